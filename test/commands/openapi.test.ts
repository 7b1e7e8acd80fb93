// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../fakes/binary'
import { createTempFolder, runAtoll, startAtoll } from '../fakes/cli'

setDefaultTimeout(30_000)

test('`atoll openapi` prints or writes the document that a server serves, without creating a data folder', async () => {
  const at = { at: createTempFolder() }
  const { code, out, json } = await runAtoll('openapi', at)
  expect([code, out.endsWith('}\n'), existsSync(join(at.at, 'tenants'))]).toEqual([0, true, false])
  expect((await runAtoll('openapi --out api.json --json', at)).json).toEqual({ file: 'api.json' })
  expect(await Bun.file(join(at.at, 'api.json')).text()).toBe(out)
  const refused = await runAtoll('openapi --out nowhere/api.json --json', at)
  expect([refused.code, refused.out, JSON.parse(refused.err).code]).toEqual([1, '', 'INVALID_INPUT'])
  await using server = await startAtoll(at)
  const served = (await (await fetch(`${server.url}/openapi/json`)).json()) as object
  expect(json).toEqual(served)
})

test('`atoll openapi` exits with code 0 and no error when its output pipe is closed early', async () => {
  const piped = ['bash', '-c', 'set -o pipefail; "$@" | head -1', 'bash', binaryPath(), 'openapi']
  const read = Bun.spawn(piped, { cwd: createTempFolder(), env: { PATH: process.env.PATH }, stderr: 'pipe' })
  const outcome = await Promise.all([read.stdout.text(), read.stderr.text(), read.exited])
  expect(outcome).toEqual(['{\n', '', 0])
})
