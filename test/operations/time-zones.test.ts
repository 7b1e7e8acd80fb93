// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { createTempFolder, runAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

const ZONES = ['Asia/Kolkata', 'America/St_Johns', 'Pacific/Apia']
const PROGRAM = join(import.meta.dir, '../fakes/time-zone-answers.ts')

async function readAnswers(zone: string) {
  const env = { PATH: process.env.PATH ?? '', TZ: zone, ATOLL_TENANTS: createTempFolder() }
  const child = Bun.spawn([process.execPath, PROGRAM], { env, stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await child.stdout.text())
}

test('schedules, quotas, names of backups, retention and times without a zone are the same in every time zone', async () => {
  const utc = await readAnswers('UTC')
  expect(utc.zone).toBe(0)
  expect(utc.answers.times).toEqual(
    ['2026-01-01T00:00Z', '2026-01-01T10:00Z', '2026-07-01T10:00:30.500Z', '2026-07-01T04:30Z'].map(Date.parse),
  )
  for (const zone of ZONES) {
    const { zone: offset, answers } = await readAnswers(zone)
    expect([zone, offset]).not.toEqual([zone, 0])
    expect(answers).toEqual(utc.answers)
  }
})

test('`atoll restore --at` takes a time without a zone as UTC, and refuses leap seconds and other texts', async () => {
  const at = createTempFolder()
  for (const TZ of ['UTC', ...ZONES]) {
    const restore = (time: string) => runAtoll(['restore', at, '--at', time, '--yes'], { at, env: { TZ } })
    const { err } = await restore('2026-01-01T10:00')
    expect([TZ, err]).toEqual([TZ, expect.stringContaining('made until 2026-01-01T10:00:00.000Z')])
    expect((await restore('2026-01-01')).err).toContain('made until 2026-01-01T00:00:00.000Z')
  }
  for (const time of ['2026-06-30T23:59:60Z', '2026-02-30', '10:00', 'yesterday']) {
    const { code, err } = await runAtoll(['restore', at, '--at', time, '--yes'], { at })
    expect([code, err]).toEqual([2, expect.stringContaining('--at takes a time such as 2030-01-31T12:00:00Z')])
  }
})
