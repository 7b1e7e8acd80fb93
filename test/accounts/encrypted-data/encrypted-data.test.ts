import { describe, expect, test } from 'bun:test'
import { configurations } from '../../../src/platform/settings/tables'
import { setMinimumKey } from '../../../src/platform/vault/key-rotation'
import { deleteSecrets, openSecret, sealSecret, withVault } from '../../../src/platform/vault/vault'
import { FORBIDDEN, WORKSPACE_NOT_FOUND } from '../../expectations'
import { errorOf } from '../../rejections'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createWorkspaceFixture } from '../../workspaces/workspace-fixtures'

const toEncryptedIdHeader = (id: string) => ({ 'x-encrypted-id': id })
const SEALED_UNREADABLE = [500, 'SEALED_UNREADABLE']

describe.each(['workspaces', 'users'] as const)('encrypted data of %s', (kind) => {
  async function createFixture() {
    const home = await createWorkspaceFixture()
    const owner = kind === 'users' ? home.users.other : home.workspace
    return { ...home, owner, path: `/${kind}/${owner}/encrypted`, admin: home.as('admin') }
  }

  test('an object is stored under the ID in x-encrypted-id, by default "default", and an unused ID returns null', async () => {
    const { admin, path } = await createFixture()
    expect((await admin.get(path)).body).toBeNull()
    const stored = await admin.post(path, { token: 'hush', deep: { list: [1, null, 'ü'] } })
    expect([stored.status, stored.body]).toEqual([200, {}])
    for (const headers of [{}, toEncryptedIdHeader(''), toEncryptedIdHeader('default'), toEncryptedIdHeader('  ')])
      expect((await admin.get(path, headers)).body).toEqual({ token: 'hush', deep: { list: [1, null, 'ü'] } })
    const unused = await admin.get(path, toEncryptedIdHeader('other'))
    expect([unused.status, unused.body, unused.headers.get('cache-control')]).toEqual([200, null, 'no-store'])
    await admin.post(path, { a: 1 }, toEncryptedIdHeader('other'))
    await admin.post(path, { b: 2 })
    expect((await admin.get(path, toEncryptedIdHeader('other'))).body).toEqual({ a: 1 })
    expect((await admin.get(path)).body).toEqual({ b: 2 })
  })

  test('encrypted data are accessible to admins only; users get 403, anonymous requests 401 and unknown owners 404', async () => {
    const { as, anonymous, admin, path } = await createFixture()
    await admin.post(path, { token: 'hush' })
    for (const name of ['user', 'other', 'editor'] as const)
      for (const answer of [await as(name).get(path), await as(name).post(path, {})])
        expect(statusAndCode(answer)).toEqual(FORBIDDEN)
    for (const answer of [await anonymous.get(path), await anonymous.post(path, {})])
      expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    const code = kind === 'users' ? 'USER_NOT_FOUND' : 'WORKSPACE_NOT_FOUND'
    for (const id of ['x', '%00', '%zz'])
      for (const answer of [
        await admin.get(`/${kind}/${id}/encrypted`),
        await admin.post(`/${kind}/${id}/encrypted`, {}),
      ])
        expect(statusAndCode(answer)).toEqual([404, code])
  })

  test('an object over 64 KiB gets 413 BODY_TOO_LARGE; other JSON values and IDs over 128 characters get 400', async () => {
    const { admin, path } = await createFixture()
    const sized = (bytes: number) => ({ a: 'x'.repeat(bytes - 8) })
    expect((await admin.post(path, sized(64 << 10))).status).toBe(200)
    expect(statusAndCode(await admin.post(path, sized((64 << 10) + 1)))).toEqual([413, 'BODY_TOO_LARGE'])
    expect((await admin.get(path)).body).toEqual(sized(64 << 10))
    for (const body of [[1], 'text', 5, null])
      expect(statusAndCode(await admin.post(path, body))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await admin.post(path, {}, toEncryptedIdHeader('x'.repeat(129))))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect((await admin.post(path, { long: true }, toEncryptedIdHeader('x'.repeat(128)))).status).toBe(200)
  })

  test('encrypted data are unreadable in the database, and a replaced, damaged or moved text gets 500 SEALED_UNREADABLE', async () => {
    const { admin, path, tenant, owner } = await createFixture()
    await admin.post(path, { token: 'hush-hush' })
    await admin.post(path, { token: 'hush-hush' }, toEncryptedIdHeader('b'))
    const rows = await tenant.db.query('select name, text from sealed order by name')
    expect(JSON.stringify(rows)).not.toContain('hush')
    const [[, b], [, standard]] = rows as [string, string][] as [[string, string], [string, string]]
    expect(b).not.toBe(standard)
    expect(Buffer.from(b, 'base64').toString('latin1')).not.toContain('hush')
    const set = (text: string) =>
      tenant.write((tx) => tx.query("update sealed set text = ? where name = 'default'", [text]))
    const bytes = Buffer.from(standard, 'base64')
    bytes[20]! ^= 1
    for (const text of [b, '', 'AAAA', standard.slice(0, 40), bytes.toString('base64')]) {
      await set(text)
      expect(statusAndCode(await admin.get(path))).toEqual(SEALED_UNREADABLE)
    }
    await set(standard)
    expect((await admin.get(path)).body).toEqual({ token: 'hush-hush' })
    await tenant.write((tx) => tx.query("update sealed set owner = 'x' where name = 'b'", []))
    await tenant.write((tx) => tx.query("update sealed set owner = ?, name = 'c' where name = 'b'", [owner]))
    expect(statusAndCode(await admin.get(path, toEncryptedIdHeader('c')))).toEqual(SEALED_UNREADABLE)
  })

  test('encrypted data of one tenant cannot be read by another, even when the row is copied into its database', async () => {
    const [source, target] = [await createFixture(), await createFixture()]
    await source.admin.post(source.path, { token: 'hush' })
    expect((await target.admin.get(source.path)).status).toBe(404)
    const [row] = await source.tenant.db.query('select purpose, name, key, text, updated from sealed')
    await target.tenant.write((tx) =>
      tx.query('insert into sealed (purpose, name, key, text, updated, owner) values (?, ?, ?, ?, ?, ?)', [
        ...row!,
        target.owner,
      ]),
    )
    expect(statusAndCode(await target.admin.get(target.path))).toEqual(SEALED_UNREADABLE)
  })
})

test('deleting a workspace deletes its encrypted data and keeps those of other workspaces', async () => {
  const { as, at, elsewhere, tenant } = await createWorkspaceFixture()
  const admin = as('admin')
  await admin.post(`${at}/encrypted`, { a: 1 })
  await admin.post(`/workspaces/${elsewhere}/encrypted`, { b: 2 })
  await admin.delete(at)
  expect(statusAndCode(await admin.get(`${at}/encrypted`))).toEqual(WORKSPACE_NOT_FOUND)
  expect(await tenant.db.query('select owner from sealed')).toEqual([[elsewhere]])
})

describe('the vault', () => {
  const place = { purpose: 'test', owner: 'me', name: 'a' }

  test('sealSecret stores texts separately by purpose, owner and name, and deleteSecrets deletes those of one owner', async () => {
    const { tenant } = await createTestTenant()
    await sealSecret(tenant, place, 'one')
    await sealSecret(tenant, { ...place, name: 'b' }, 'two')
    await sealSecret(tenant, { ...place, purpose: 'other' }, 'three')
    await sealSecret(tenant, place, 'uno')
    expect(await openSecret(tenant, place)).toBe('uno')
    expect(await openSecret(tenant, { ...place, name: 'b' })).toBe('two')
    expect(await openSecret(tenant, { ...place, owner: 'you' })).toBeNull()
    await tenant.write((tx) => deleteSecrets(tx, 'test', 'me'))
    expect([await openSecret(tenant, place), await openSecret(tenant, { ...place, purpose: 'other' })]).toEqual([
      null,
      'three',
    ])
  })

  test('withVault commits a secret together with the other writes of its transaction, or neither', async () => {
    const { tenant } = await createTestTenant()
    const row = {
      _id: 'x',
      key: 'x',
      public: false,
      kind: '',
      description: '',
      metadata: {},
      created: '2026-01-01T00:00:00.000Z',
      updated: '2026-01-01T00:00:00.000Z',
    }
    const writeBoth = (fails: boolean) =>
      withVault(tenant, async (tx, vault) => {
        await vault.seal(tx, place, 'text')
        await tx.insert(configurations).values(row)
        if (fails) throw new Error('on purpose')
      })
    expect((await errorOf(writeBoth(true))).message).toContain('on purpose')
    expect([await openSecret(tenant, place), await tenant.db.$count(configurations)]).toEqual([null, 0])
    await writeBoth(false)
    expect([await openSecret(tenant, place), await tenant.db.$count(configurations)]).toEqual(['text', 1])
  })

  test('setMinimumKey never lowers the minimum, and sealSecret rejects an older key with 503 BUSY', async () => {
    const { tenant } = await createTestTenant()
    const mark = (key: number) => tenant.write((tx) => setMinimumKey(tx, key))
    const marked = () => tenant.db.query("select version from versions where topic = 'vault'")
    await mark(1)
    await sealSecret(tenant, place, 'fits')
    await mark(1_000)
    await mark(2)
    expect(Number((await marked())[0]![0])).toBe(1_000)
    expect(await errorOf(sealSecret(tenant, place, 'too late'))).toMatchObject({ status: 503, code: 'BUSY' })
    expect(await openSecret(tenant, place)).toBe('fits')
  })
})
