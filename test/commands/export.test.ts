// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, PASSWORD, runAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

test('an exported tenant is imported under another id, and only its owner can read the file', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_BACKUP_PASSPHRASE: 'a long passphrase' } }
  await createTenantByCli(at, 'acme')
  const exported = await runAtoll('export acme --to acme.atoll --json', at)
  expect([exported.code, exported.json]).toMatchObject([0, { tenant: 'acme', encrypted: true, file: 'acme.atoll' }])
  expect(statSync(join(at.at, 'acme.atoll')).mode & 0o777).toBe(0o600)
  const [, recipient] = readFileSync(join(at.at, 'acme.atoll'), 'latin1').split('\n')
  expect(recipient).toMatch(/^-> scrypt \S+ 18$/)
  const imported = await runAtoll('import acme.atoll --as copy --json', at)
  expect([imported.code, imported.json]).toMatchObject([0, { tenant: 'copy', rows: exported.json.rows }])
  const taken = await runAtoll(['user', 'create', 'copy', 'root', '--password', PASSWORD, '--json'], at)
  expect(JSON.parse(taken.err.trim().split('\n').at(-1)!).code).toBe('USERNAME_EXISTS')
})

test('an export of an unknown tenant and an import of a missing file are refused, and leave no file', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  for (const [command, code] of [
    ['export nobody --to nobody.atoll', 'TENANT_NOT_FOUND'],
    ['import missing.atoll --as copy', 'INVALID_INPUT'],
  ] as const) {
    const { code: exitCode, err } = await runAtoll(`${command} --json`, at)
    expect([command, exitCode, JSON.parse(err.trim().split('\n').at(-1)!).code]).toEqual([command, 1, code])
  }
  expect(readdirSync(at.at)).toEqual(['tenants'])
})
