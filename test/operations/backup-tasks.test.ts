import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../../src/config'
import { DAY_MS } from '../../src/core/clock'
import { checkBackups } from '../../src/operations/checks'
import { registry } from '../../src/tenancy/registry'
import { tenantBackups } from '../../src/tenancy/tables'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import { createClientOf, createTenantWithThings, damageData, freshId, freshTarget } from '../backups/fixtures'
import { TIME } from '../expectations'
import { callApi, createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(90_000)

const TOKEN = 'the-operator-token-of-the-backups'

const operator = (method: string, path: string, body?: unknown) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization: `Bearer ${TOKEN}` }, body })

/** The tasks are processes of their own, which have their settings from the environment. */
function setTarget(place: string) {
  config.ATOLL_BACKUP_TO = place
  process.env.ATOLL_BACKUP_TO = place
}

/** Returns a task when it has ended. */
async function finish({ status, body }: TestResponse) {
  expect([200, 202], JSON.stringify(body)).toContain(status)
  const read = async () => (await operator('GET', `/tasks/${body._id}`)).body
  return waitUntil(read, (task) => task.status !== 'running', 60_000)
}

const backUp = async (id: string) => finish(await operator('POST', `/tenants/${id}/backups`))
const listNames = async (id: string): Promise<string[]> =>
  (await operator('GET', `/tenants/${id}/backups`)).body.map(({ name }: { name: string }) => name)
const getTenant = async (id: string) => (await operator('GET', `/tenants/${id}`)).body

beforeAll(() => {
  config.ATOLL_OPERATOR_TOKEN = TOKEN
})
beforeEach(() => setTarget(freshTarget()))
afterEach(() => {
  config.ATOLL_BACKUP_SCHEDULE = ''
  resetClock()
})
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
  config.ATOLL_BACKUP_TO = ''
  delete process.env.ATOLL_BACKUP_TO
})

describe('backups by the operator', () => {
  test('a backup is a task with its place and size, is listed, and is the last backup of the tenant', async () => {
    const { id } = await createTenantWithThings()
    expect(await getTenant(id)).toMatchObject({ backup: null, backupOverdue: false })
    const task = await backUp(id)
    expect(task).toMatchObject({ kind: 'backup', tenant: id, status: 'succeeded', input: {}, problem: null })
    expect(task.progress.message).toEndWith('.')
    const { place, bytes, created } = task.result
    expect(task.result).toMatchObject({ tenant: id, encrypted: false, ms: expect.any(Number) })
    const { body } = await operator('GET', `/tenants/${id}/backups`)
    expect(body).toEqual([
      {
        ...{ name: place.split('/').at(-1), place, created, bytes, encrypted: false },
        ...{ version: expect.any(String), schemaVersion: expect.any(Number), rows: expect.any(Number) },
      },
    ])
    expect(body[0].rows).toBeGreaterThan(25)
    const backup = { created, bytes, problem: null, failed: null }
    expect((await getTenant(id)).backup).toEqual(backup)
    expect((await operator('GET', `/tenants?q=${id}`)).body).toMatchObject([{ id, backup, backupOverdue: false }])
  })

  test('a backup that fails says why in its task, at the tenant and in an event, and the next one ends that', async () => {
    const { id } = await createTestTenant()
    const file = join(freshTarget(), 'no-folder')
    writeFileSync(file, '')
    setTarget(file)
    const task = await backUp(id)
    expect(task).toMatchObject({ status: 'failed', result: null, problem: { code: 'BACKUP_TARGET_FAILED' } })
    const { message: problem } = task.problem
    expect(problem).toContain(file)
    expect((await getTenant(id)).backup).toEqual({ created: null, bytes: null, problem, failed: TIME })
    const [event] = (await operator('GET', `/events?tenant=${id}&limit=1`)).body
    expect(event).toMatchObject({ eventName: 'backup-failed', metadata: { problem } })
    setTarget(freshTarget())
    expect((await backUp(id)).status).toBe('succeeded')
    expect((await getTenant(id)).backup).toMatchObject({ created: TIME, problem: null, failed: null })
  })

  test('the list tells that its folder is gone or cannot be read, but not before the first backup has created it', async () => {
    const { id } = await createTestTenant()
    const path = `/tenants/${id}/backups`
    const folder = join(freshTarget(), 'made-by-the-first-backup')
    setTarget(folder)
    expect(await operator('GET', path)).toMatchObject({ status: 200, body: [] })
    await backUp(id)
    expect(await listNames(id)).toHaveLength(1)
    renameSync(folder, `${folder}-elsewhere`)
    const gone = await operator('GET', path)
    expect(statusAndCode(gone)).toEqual([502, 'BACKUP_TARGET_FAILED'])
    expect(gone.body.message).toBe(`${folder} cannot be read: there is no such folder.`)
    // Tenants without a backup have lost the same folder.
    const other = await createTestTenant()
    expect((await operator('GET', `/tenants/${other.id}/backups`)).status).toBe(502)
    writeFileSync(folder, '')
    expect((await operator('GET', path)).body.message).toContain('cannot be read: a part of its path is not a folder')
    rmSync(folder)
    renameSync(`${folder}-elsewhere`, folder)
    expect(await listNames(id)).toHaveLength(1)
  })

  test('backups are refused for an unknown tenant, and without a place with the setting that names one', async () => {
    const { id } = await createTestTenant()
    for (const method of ['GET', 'POST'])
      expect(statusAndCode(await operator(method, '/tenants/nobody/backups'))).toEqual([404, 'TENANT_NOT_FOUND'])
    setTarget('')
    for (const method of ['GET', 'POST']) {
      const refused = await operator(method, `/tenants/${id}/backups`)
      expect(statusAndCode(refused)).toEqual([400, 'NO_BACKUP_TARGET'])
      expect(refused.body.message).toContain('ATOLL_BACKUP_TO')
    }
    expect((await operator('GET', `/tasks?tenant=${id}`)).body).toEqual([])
  })

  test('a list and a restore from a place that cannot be read are 502 with the place and the reason', async () => {
    const { id } = await createTestTenant()
    setTarget('s3://backups/atoll') // without credentials
    const restore = { backup: '2030-01-31T03-00-00.000Z' }
    for (const refused of [
      await operator('GET', `/tenants/${id}/backups`),
      await operator('POST', `/tenants/${id}/restore?confirm=${id}`, restore),
    ]) {
      expect(statusAndCode(refused)).toEqual([502, 'BACKUP_TARGET_FAILED'])
      expect(refused.body.message).toMatch(
        /^s3:\/\/backups\/atoll.* cannot be read: set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY\.$/,
      )
    }
  })
})

describe('restores by the operator', () => {
  test('a backup becomes a new tenant, and replaces the data of its own, which keeps its host', async () => {
    const own = await createTenantWithThings()
    await backUp(own.id)
    const [backup] = await listNames(own.id)
    const [thing] = (await own.as('admin').get(`${own.path}?$limit=1`)).body
    const thingPath = `${own.path}/${thing._id}`
    expect((await own.as('admin').put(thingPath, { name: 'changed' })).status).toBe(200)

    const as = freshId()
    const path = `/tenants/${own.id}/restore`
    const restored = await finish(await operator('POST', path, { backup, as }))
    expect(restored).toMatchObject({ kind: 'restore', tenant: own.id, status: 'succeeded', input: { backup, as } })
    expect(restored.result).toMatchObject({ tenant: as, lostSecrets: 0, rows: expect.any(Number) })
    const copy = await createClientOf(as, own.users.admin)
    expect((await copy.get(thingPath)).body.name).toBe(thing.name)
    expect((await own.as('admin').get(thingPath)).body.name).toBe('changed')

    const replaced = await finish(await operator('POST', `${path}?confirm=${own.id}`, { backup }))
    expect(replaced).toMatchObject({ status: 'succeeded', result: { tenant: own.id } })
    expect((await own.as('admin').get(thingPath)).body.name).toBe(thing.name)
    expect((await getTenant(own.id)).hosts).toEqual([`${own.id}.test`])
    const [event] = (await operator('GET', `/events?tenant=${own.id}&limit=1`)).body
    expect(event).toMatchObject({ eventName: 'tenant-restored', metadata: { created: replaced.result.created } })
  })

  test('a backup brings back a tenant that was deleted', async () => {
    const own = await createTenantWithThings()
    await backUp(own.id)
    const [backup] = await listNames(own.id)
    await operator('DELETE', `/tenants/${own.id}?confirm=${own.id}`)
    const path = `/tenants/${own.id}/restore?confirm=${own.id}`
    expect(await finish(await operator('POST', path, { backup }))).toMatchObject({ status: 'succeeded' })
    const restored = await createClientOf(own.id, own.users.admin)
    expect((await restored.get(`${own.path}?$count=true`)).headers.get('x-total-count')).toBe('25')
  })

  test('a damaged backup fails with BACKUP_DAMAGED, and the data stay', async () => {
    const own = await createTenantWithThings()
    const { result } = await backUp(own.id)
    damageData(result.place)
    const [backup] = await listNames(own.id)
    const task = await finish(await operator('POST', `/tenants/${own.id}/restore?confirm=${own.id}`, { backup }))
    expect(task).toMatchObject({ status: 'failed', problem: { code: 'BACKUP_DAMAGED' } })
    expect((await own.as('admin').get(own.path)).body).not.toEqual([])
  })

  test('a restore is refused without its confirmation, and for an unknown backup, a taken or invalid id, or no place', async () => {
    const { id } = await createTestTenant()
    await backUp(id)
    const [backup] = await listNames(id)
    const path = `/tenants/${id}/restore`
    const refusals: [string, unknown, [number, string]][] = [
      [path, { backup }, [400, 'INVALID_INPUT']],
      [`${path}?confirm=other`, { backup }, [400, 'INVALID_INPUT']],
      [path, { backup: 'none', as: freshId() }, [404, 'BACKUP_NOT_FOUND']],
      [path, { backup: `../${id}/${backup}`, as: freshId() }, [400, 'INVALID_INPUT']],
      [`/tenants/${encodeURIComponent(`../${id}`)}/restore`, { backup, as: freshId() }, [400, 'INVALID_INPUT']],
      ['/tenants/nobody/restore', { backup, as: freshId() }, [404, 'BACKUP_NOT_FOUND']],
      [path, { backup, as: id }, [409, 'TENANT_EXISTS']],
      [path, { backup, as: 'No Id' }, [400, 'INVALID_INPUT']],
    ]
    for (const [url, body, expected] of refusals)
      expect(statusAndCode(await operator('POST', url, body)), JSON.stringify([url, body])).toEqual(expected)
    setTarget('')
    const refused = await operator('POST', path, { backup, as: freshId() })
    expect(statusAndCode(refused)).toEqual([400, 'NO_BACKUP_TARGET'])
    expect((await operator('GET', `/tasks?tenant=${id}&kind=restore`)).body).toEqual([])
  })
})

describe('clones by the operator', () => {
  test('a tenant is copied to a new one without a place for backups, and a taken id or unknown tenant is refused', async () => {
    const own = await createTenantWithThings()
    setTarget('')
    const as = freshId()
    const task = await finish(await operator('POST', `/tenants/${own.id}/clone`, { as }))
    expect(task).toMatchObject({ kind: 'clone', tenant: own.id, status: 'succeeded', input: { as } })
    expect(task.result).toMatchObject({ tenant: as, from: own.id, lostSecrets: 0 })
    const copy = await createClientOf(as, own.users.admin)
    expect((await copy.get(`${own.path}?$count=true`)).headers.get('x-total-count')).toBe('25')
    expect((await getTenant(as)).hosts).toEqual([])
    const clone = (id: string, as: string) => operator('POST', `/tenants/${id}/clone`, { as })
    expect(statusAndCode(await clone(own.id, as))).toEqual([409, 'TENANT_EXISTS'])
    expect(statusAndCode(await clone('nobody', freshId()))).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(statusAndCode(await clone(own.id, 'No Id'))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('overdue backups', () => {
  const recordBackup = (tenant: string, age: number) => {
    const created = new Date(Date.now() - age).toISOString()
    return registry.write((tx) => tx.insert(tenantBackups).values({ tenant, created, bytes: 1 }))
  }
  const isOverdue = async (id: string) => (await getTenant(id)).backupOverdue

  test('a tenant is overdue when its last backup is two days old while backups are scheduled, and health says so', async () => {
    const { id } = await createTestTenant()
    advanceClock(3 * DAY_MS)
    expect(await isOverdue(id)).toBeFalse()
    expect(await checkBackups()).toMatchObject({ ok: true, message: expect.stringContaining('ATOLL_BACKUP_SCHEDULE') })
    config.ATOLL_BACKUP_SCHEDULE = '0 3 * * *'
    expect(await isOverdue(id)).toBeTrue()
    const { checks } = (await operator('GET', '/health')).body
    const check = checks.find(({ check }: { check: string }) => check === 'backups')
    expect(check).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^these tenants have had none for two days/),
    })
    await recordBackup(id, 0)
    expect(await isOverdue(id)).toBeTrue()
    resetClock()
    expect(await isOverdue(id)).toBeFalse()
    expect((await checkBackups()).message).not.toContain(id)
  })

  test('where the schedule has longer pauses, a backup may be as old as the last run but one', async () => {
    const { id } = await createTestTenant()
    await recordBackup(id, -DAY_MS)
    config.ATOLL_BACKUP_SCHEDULE = '0 3 * * 1'
    advanceClock(7 * DAY_MS)
    expect(await isOverdue(id)).toBeFalse()
    advanceClock(10 * DAY_MS)
    expect(await isOverdue(id)).toBeTrue()
  })
})
