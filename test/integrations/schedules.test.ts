import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { moveClock, toIsoString } from '../../src/core/clock'
import { useZoneFolder } from '../../src/core/zone-data/current-zones'
import { findNextDue } from '../../src/integrations/triggers/schedule'
import { resetClock } from '../accounts/session-fixtures'
import { compileZones, zoneCompiler } from '../fakes/time-zones'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { allowPrivateNetwork, denyPrivateNetwork, times } from '../plugins/fixtures'
import { statusAndCode } from '../test-tenant'
import { createIntegrationsFixture, type IntegrationsFixture, listJobs } from './fixtures'

setDefaultTimeout(30_000)

const receiver = startWebhookReceiver()
const { deliveries, url } = receiver
let h: IntegrationsFixture
beforeAll(async () => {
  allowPrivateNetwork()
  h = await createIntegrationsFixture()
})
beforeEach(async () => {
  await h.clear()
  deliveries.length = 0
  receiver.answer = () => 200
})
afterEach(() => {
  resetClock()
  useZoneFolder('')
})
afterAll(async () => {
  denyPrivateNetwork()
  await receiver.stop()
})

const setTime = (moment: string) => moveClock(Date.parse(moment))
/** Sets the clock and runs the jobs that are due. */
const advanceTo = async (moment: string) => {
  setTime(moment)
  await h.due()
}
const createSchedule = (cron: string, more: object = {}) =>
  h.integration({ kind: 'schedule', cron, ...more }, { kind: 'http', url })
const receivedDueTimes = () => deliveries.map(({ body }) => (body.metadata as { due: string }).due)
const listNextDueTimes = async () =>
  (await listJobs(h.tenant, 'schedule')).flatMap(([, , due]) => (due === null ? [] : toIsoString(due)))

describe('schedules', () => {
  test('a schedule runs once at each of its times', async () => {
    setTime('2031-05-01T10:00:30Z')
    const { _id } = await createSchedule('*/5 * * * *')
    await advanceTo('2031-05-01T10:04:59Z')
    expect(deliveries).toEqual([])
    await advanceTo('2031-05-01T10:05:01Z')
    expect(receivedDueTimes()).toEqual(['2031-05-01T10:05:00.000Z'])
    expect(deliveries[0]!.body).toMatchObject({
      source: 'plugins',
      kind: 'schedule',
      eventName: 'due',
      metadata: { integration: _id, due: '2031-05-01T10:05:00.000Z' },
    })
    await h.due()
    await advanceTo('2031-05-01T10:09:00Z')
    expect(deliveries.length).toBe(1)
    await advanceTo('2031-05-01T10:10:00Z')
    expect(receivedDueTimes()).toEqual(['2031-05-01T10:05:00.000Z', '2031-05-01T10:10:00.000Z'])
  })

  test('a schedule runs at its next time by a clock that was set back', async () => {
    setTime('2031-06-10T10:04:00Z')
    await createSchedule('*/5 * * * *')
    await advanceTo('2031-06-10T10:05:01Z')
    // The clock was ahead and is right again.
    await advanceTo('2031-05-01T10:00:30Z')
    expect(await listNextDueTimes()).toEqual(['2031-05-01T10:05:00.000Z'])
    await advanceTo('2031-05-01T10:05:01Z')
    expect(receivedDueTimes()).toEqual(['2031-06-10T10:05:00.000Z', '2031-05-01T10:05:00.000Z'])
  })

  test('a schedule runs again after a run that failed while the clock was ahead', async () => {
    setTime('2031-07-10T10:04:00Z')
    await createSchedule('*/5 * * * *')
    receiver.answer = () => 503
    await advanceTo('2031-07-10T10:05:01Z')
    receiver.answer = () => 200
    await advanceTo('2031-07-01T10:05:30Z')
    // The pending run replaces the times until it succeeds.
    await advanceTo('2031-07-01T10:15:01Z')
    await advanceTo('2031-07-01T10:20:01Z')
    expect(receivedDueTimes().at(-1)).toBe('2031-07-01T10:20:00.000Z')
  })

  test('a schedule runs a lambda, which receives the due time', async () => {
    setTime('2031-05-01T10:00:30Z')
    const lambdaId = await h.lambda('({ event, user }) => { console.log(event.metadata.due, user) }')
    await h.integration({ kind: 'schedule', cron: '30 0 10 * * *' }, { kind: 'lambda', lambdaId })
    await advanceTo('2031-05-02T10:00:30Z')
    const [run] = (await h.admin.get(`/lambdas/${lambdaId}/logs`)).body
    expect([run.trigger, run.status, run.logs[0].text]).toEqual(['schedule', 200, '2031-05-02T10:00:30.000Z null'])
  })

  test('a schedule that missed several times runs once', async () => {
    setTime('2031-05-01T10:00:30Z')
    await createSchedule('* * * * *')
    await advanceTo('2031-05-03T12:34:56Z')
    expect(deliveries.length).toBe(1)
    expect(await listNextDueTimes()).toEqual(['2031-05-03T12:35:00.000Z'])
    await advanceTo('2031-05-03T12:35:00Z')
    expect(receivedDueTimes()[1]).toBe('2031-05-03T12:35:00.000Z')
  })

  test('a schedule with a run that waits for its retry skips the times until the retry succeeds', async () => {
    setTime('2031-05-01T10:00:30Z')
    await createSchedule('* * * * *')
    receiver.answer = () => 500
    for (const minute of times(10)) await advanceTo(`2031-05-01T10:0${minute}:59Z`)
    expect(new Set(receivedDueTimes())).toEqual(new Set(['2031-05-01T10:01:00.000Z']))
    receiver.answer = () => 200
    await advanceTo('2031-05-01T12:00:00Z')
    await advanceTo('2031-05-01T12:01:00Z')
    expect(receivedDueTimes().at(-1)).toBe('2031-05-01T12:01:00.000Z')
  })

  test('a schedule follows the local time of its time zone across changes to and from daylight saving time', async () => {
    const zone = { timezone: 'Europe/Berlin' }
    setTime('2031-03-28T12:00:00Z')
    await createSchedule('30 2 * * *', zone)
    const seen: string[] = []
    for (const _ of times(4)) {
      const [due] = await listNextDueTimes()
      seen.push(due!)
      await advanceTo(due!)
    }
    // 30 March 2031 has no 02:30.
    expect(seen).toEqual([
      ...[
        '2031-03-29T01:30:00.000Z',
        '2031-03-30T01:30:00.000Z',
        '2031-03-31T00:30:00.000Z',
        '2031-04-01T00:30:00.000Z',
      ],
    ])
    expect(receivedDueTimes()).toEqual(seen)
    const after = (cron: string, moment: string, timezone?: string) =>
      toIsoString(findNextDue({ cron, timezone }, Date.parse(moment))!)
    // 26 October 2031 has 02:30 twice.
    const first = after('30 2 * * *', '2031-10-25T12:00:00Z', 'Europe/Berlin')
    expect([first, after('30 2 * * *', first, 'Europe/Berlin')]).toEqual([
      '2031-10-26T00:30:00.000Z',
      '2031-10-27T01:30:00.000Z',
    ])
    const hours = ['2031-10-25T22:30:00Z']
    for (const _ of times(4)) hours.push(after('0 * * * *', hours.at(-1)!, 'Europe/Berlin'))
    expect(hours.slice(1).map((hour) => hour.slice(11, 13))).toEqual(['23', '00', '01', '02'])
    expect(after('0 9 * * MON', '2031-05-01T00:00:00Z')).toBe('2031-05-05T09:00:00.000Z')
    expect(after('0 9 * * *', '2031-05-01T00:00:00Z', 'Asia/Kathmandu')).toBe('2031-05-01T03:15:00.000Z')
  })

  test.skipIf(!zoneCompiler)(
    'a schedule that waits gets its time anew after the rules of its zone changed',
    async () => {
      setTime('2031-01-10T12:00:00Z')
      await createSchedule('0 9 * * *', { timezone: 'Europe/Berlin' })
      expect(await listNextDueTimes()).toEqual(['2031-01-11T08:00:00.000Z'])
      for (const [offset, due] of [
        ['2', '2031-01-11T07:00:00.000Z'],
        ['0', '2031-01-11T09:00:00.000Z'],
      ] as const) {
        useZoneFolder(compileZones(`Z Europe/Berlin ${offset} - test`))
        await h.due()
        expect(await listNextDueTimes()).toEqual([due])
      }
      // By the next rules, the time of today is over: it is made up for at the stored time.
      setTime('2031-01-11T08:30:00Z')
      useZoneFolder(compileZones('Z Europe/Berlin 1 - test'))
      await h.due()
      expect(await listNextDueTimes()).toEqual(['2031-01-11T09:00:00.000Z'])
      await advanceTo('2031-01-11T09:00:00Z')
      expect(receivedDueTimes()).toEqual(['2031-01-11T09:00:00.000Z'])
      expect(await listNextDueTimes()).toEqual(['2031-01-12T08:00:00.000Z'])
    },
  )

  test('a schedule that is changed, deactivated or deleted gets its new due time, or none, at once', async () => {
    setTime('2031-05-01T10:00:30Z')
    const { _id } = await createSchedule('* * * * *')
    await h.admin.put(`/integrations/${_id}`, { trigger: { kind: 'schedule', cron: '0 12 * * *' } })
    expect(await listNextDueTimes()).toEqual(['2031-05-01T12:00:00.000Z'])
    await h.admin.put(`/integrations/${_id}`, {
      trigger: { kind: 'schedule', cron: '0 12 * * *', timezone: 'America/Lima' },
    })
    expect(await listNextDueTimes()).toEqual(['2031-05-01T17:00:00.000Z'])
    await h.admin.put(`/integrations/${_id}`, { name: 'another name' })
    await h.admin.put(`/integrations/${_id}`, { active: false })
    expect(await listNextDueTimes()).toEqual([])
    await advanceTo('2031-05-02T10:00:00Z')
    expect(deliveries).toEqual([])
    await h.admin.put(`/integrations/${_id}`, { active: true })
    expect(await listNextDueTimes()).toEqual(['2031-05-02T17:00:00.000Z'])
    await h.admin.put(`/integrations/${_id}`, { trigger: { kind: 'webhook' } })
    expect(await listNextDueTimes()).toEqual([])
    await h.admin.put(`/integrations/${_id}`, { trigger: { kind: 'schedule', cron: '* * * * *' } })
    expect((await listNextDueTimes()).length).toBe(1)
    await h.admin.delete(`/integrations/${_id}`)
    expect(await listJobs(h.tenant, 'schedule')).toEqual([])
  })

  test('rejects an invalid cron expression or time zone with 400 INVALID_INPUT', async () => {
    const target = { kind: 'http', url }
    const readInvalidPath = async (trigger: object) => {
      const answer = await h.admin.post('/integrations', { trigger: { kind: 'schedule', ...trigger }, target })
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      return answer.body.details[0].path
    }
    for (const cron of [
      '',
      '* * * *',
      '* * * * * * *',
      '61 * * * *',
      'a b c d e',
      '*/0 * * * *',
      '0 0 31 2 *',
      '@daily',
      '\n',
    ])
      expect(await readInvalidPath({ cron })).toBe('/trigger/cron')
    expect(await readInvalidPath({ cron: '* * * * *', timezone: 'Mars/Olympus' })).toBe('/trigger/timezone')
  })

  test('a schedule runs once when eight workers look for due jobs at once', async () => {
    setTime('2031-05-01T10:00:30Z')
    await createSchedule('* * * * *')
    await createSchedule('* * * * *')
    setTime('2031-05-01T10:01:00Z')
    await Promise.all(times(8).map(() => h.due()))
    expect(receivedDueTimes()).toEqual(['2031-05-01T10:01:00.000Z', '2031-05-01T10:01:00.000Z'])
    expect(new Set(deliveries.map(({ headers }) => headers['idempotency-key'])).size).toBe(2)
  })
})
