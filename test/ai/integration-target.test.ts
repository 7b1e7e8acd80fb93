import { afterAll, beforeEach, expect, test } from 'bun:test'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { callApi, statusAndCode } from '../test-tenant'
import { createAiFixture, toolCalls } from './fixtures'

const at = await createAiFixture()
const { user, admin, openai, anonymous } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const target = { kind: 'ai', sourceId: at.source, model: 'model-1', systemPrompt: 'Sort it.' }

test('a webhook integration sends its body to a model and returns the completion, or 502 AI_UPSTREAM_ERROR when that fails', async () => {
  const { _id } = await at.made('/integrations', { trigger: { kind: 'webhook' }, target, guest: true })
  const { status, body } = await anonymous.post(`/webhooks/${_id}`, { message: 'Where is my parcel?' })
  expect(status).toBe(200)
  expect(body.choices[0].message.content).toBe('Hello there!')
  expect(openai.last().body.messages).toEqual([
    { role: 'system', content: 'Sort it.' },
    { role: 'user', content: 'Where is my parcel?' },
  ])
  expect((await at.usage())[0]).toMatchObject({ integration: _id, user: null, status: 'completed' })
  await user.post(`/webhooks/${_id}`, { parcel: 7 })
  expect(JSON.parse(openai.last().body.messages[1].content).body).toEqual({ parcel: 7 })
  openai.reply({ status: 401 })
  expect(statusAndCode(await anonymous.post(`/webhooks/${_id}`, { message: 'x' }))).toEqual([502, 'AI_UPSTREAM_ERROR'])
})

test('an event integration lets a model call tools, and is not triggered by the events that these tools emit', async () => {
  const tools = [
    await at.tool(
      'note',
      '({ body }, { events }) => events.emit({ source: "notes", kind: "note", eventName: "noted", metadata: body })',
    ),
  ]
  const trigger = { kind: 'event' }
  const { _id } = await at.made('/integrations', { trigger, target: { ...target, tools } })
  openai.reply(toolCalls(['note', { urgent: true }, 'c1']), { text: 'Noted.' })
  await at.done(admin.post('/events', { source: 'shop', kind: 'order', eventName: 'placed', metadata: { n: 1 } }))
  await runDueJobs(at.tenant)
  expect(openai.requests).toHaveLength(2)
  expect(JSON.parse(openai.requests[0]!.body.messages[1].content)).toMatchObject({
    eventName: 'placed',
    metadata: { n: 1 },
  })
  expect((await at.usage())[0]).toMatchObject({ integration: _id, status: 'completed' })
  await runDueJobs(at.tenant)
  expect(openai.requests).toHaveLength(2)
  await at.done(admin.delete(`/integrations/${_id}`))
})

test('a failed run of an integration waits with one attempt, and a replay completes it', async () => {
  const { _id } = await at.made('/integrations', { trigger: { kind: 'event', source: 'shop' }, target })
  openai.reply({ status: 401 })
  await at.done(admin.post('/events', { source: 'shop', kind: 'order', eventName: 'placed' }))
  await runDueJobs(at.tenant)
  const [run] = (await admin.get(`/integrations/${_id}/runs`)).body
  expect(run).toMatchObject({ state: 'waiting', attempts: 1, outcome: { code: 'AI_UPSTREAM_ERROR' } })
  await at.done(admin.post(`/integrations/${_id}/runs/${run._id}/replay`, {}))
  await runDueJobs(at.tenant)
  expect((await admin.get(`/integrations/${_id}/runs`)).body).toEqual([])
})

test('an integration that records threads stores a message with U+0000 without that character', async () => {
  const { _id } = await at.made('/integrations', {
    trigger: { kind: 'webhook' },
    target: { ...target, recordThread: true },
  })
  const answer = await callApi('POST', `${at.origin}/api/webhooks/${_id}`, {
    headers: { 'x-api-key': at.tokens.user },
    raw: 'Where is \0my parcel?',
  })
  expect(answer.status).toBe(200)
  expect(openai.last().body.messages.at(-1).content).toBe('Where is my parcel?')
  expect((await at.threadOf(answer.body.threadId)).messages[0].content).toBe('Where is my parcel?')
})

test('the event of a failed run tells editors neither the system prompt nor anything else of the target', async () => {
  const trigger = { kind: 'event', source: 'shop' }
  const { _id } = await at.made('/integrations', { trigger, target })
  openai.own.always = { status: 404 }
  await at.done(admin.post('/events', { source: 'shop', kind: 'order', eventName: 'placed' }))
  for (let attempt = 0; attempt < 10; attempt++) {
    await runDueJobs(at.tenant)
    moveClock(now() + 2 * HOUR_MS)
  }
  const { body: failures } = await admin.get('/events?eventName=delivery-failed')
  const event = failures.find(({ metadata }: { metadata: object }) => Object.values(metadata).includes(_id))
  expect(event.metadata).toMatchObject({ integration: _id, attempts: 10, outcome: { code: 'AI_UPSTREAM_ERROR' } })
  expect(JSON.stringify(event)).not.toContain('Sort it.')
  moveClock()
  openai.own.always = {}
})
