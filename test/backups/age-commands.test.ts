import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEncryption } from '../../src/backups/encryption'
import { openTarget } from '../../src/backups/targets'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { config } from '../../src/config'
import { createTempFolder } from '../temp-folder'
import { uploadFiles } from './file-fixtures'
import { createTenantWithThings, findRecord, freshTarget } from './fixtures'

setDefaultTimeout(60_000)

const programs = ['age', 'age-keygen', 'zstd', 'script']
const missing = programs.filter((name) => !Bun.which(name))
if (missing.length)
  console.warn(
    `SKIPPED: the commands of age, because there is no ${missing.join(', ')}. Debian: apt-get install age zstd.`,
  )

const PASSPHRASE = 'correct horse battery staple'
const isOnPostgres = !!config.ATOLL_DATABASE_URL

/** Runs a line of the guide in the folder of a backup, and returns what it prints. What asks for a passphrase gets it on a terminal. */
async function run(line: string, cwd: string, passphrase?: string) {
  const command = passphrase === undefined ? ['bash', '-c', line] : ['script', '-qec', line, '/dev/null']
  const child = Bun.spawn(command, { cwd, stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' })
  // The terminal drops what arrives before the program asks.
  if (passphrase !== undefined) await Bun.sleep(1_000)
  if (passphrase !== undefined) child.stdin.write(`${passphrase}\n`)
  await child.stdin.end()
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect([line, code, code ? out + err : '']).toEqual([line, 0, ''])
  return out
}

const guide = readFileSync('docs/operations/backup.md', 'utf8')
const lines = guide
  .split('\n')
  .filter((line) => line.startsWith('age -d '))
  .map((line) => line.replace(/#.*/, '').trim())

/** Reads a decrypted copy of the data: a database or lines. */
function countThings(folder: string) {
  const data = readFileSync(join(folder, 'data.db'))
  if (isOnPostgres) return data.toString().split('thing 24').length - 1
  return new Database(join(folder, 'data.db'), { readonly: true }).query('select * from entities').all().length
}

async function backUp(passphrase: string | undefined, recipients: string[]) {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first' })
  const encryption = await createEncryption(passphrase, recipients)
  return (await backUpTenant(await findRecord(own.id), openTarget(freshTarget()), encryption)).place
}

/** The data of tenants in PostgreSQL have another name. */
const adapt = (line: string, folder: string) => {
  const name = readdirSync(folder).find((each) => /^(data|rows)/.test(each))!
  return line.replace('data.db.zst.age', name)
}

test.skipIf(missing.length > 0)(
  'a backup with a passphrase is decrypted by age and zstd as the guide prints it',
  async () => {
    const folder = await backUp(PASSPHRASE, [])
    const [keys = '', data = '', contents = '', ...more] = lines
    expect(more).toEqual([])
    await run(keys, folder, PASSPHRASE)
    expect(readFileSync(join(folder, 'key.txt'), 'utf8')).toContain('AGE-SECRET-KEY-1')
    await run(adapt(data, folder), folder)
    expect(countThings(folder)).toBeGreaterThan(0)
    const { identity } = JSON.parse(await run(contents, folder))
    expect(identity).toStartWith('AGE-SECRET-KEY-1')
    writeFileSync(join(folder, 'contents.txt'), identity)
    const [stored] = readdirSync(join(folder, '../contents'))
    expect(await run(`age -d -i contents.txt ../contents/${stored}`, folder)).toBe('the first')
  },
)

test.skipIf(missing.length > 0)(
  'a backup for a recipient is decrypted by age with the file of the own identity',
  async () => {
    const own = createTempFolder('identity')
    await run('age-keygen -o key.txt', own)
    const identity = readFileSync(join(own, 'key.txt'), 'utf8')
    const folder = await backUp(undefined, [/# public key: (\S+)/.exec(identity)![1]!])
    expect(existsSync(join(folder, 'key.age'))).toBe(false)
    writeFileSync(join(folder, 'key.txt'), identity)
    await run(adapt(lines[1]!, folder), folder)
    expect(countThings(folder)).toBeGreaterThan(0)
  },
)
