// engine: sqlite
import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, runAtoll } from '../fakes/cli'

test('the binary prints an unexpected failure with the lines of the sources', async () => {
  const at = createTempFolder()
  mkdirSync(join(at, 'tenants', 'secrets.json'), { recursive: true }) // a folder where a file is expected
  const { code, err } = await runAtoll('serve', { at })
  expect(code).not.toBe(0)
  expect(err).toContain('EISDIR')
  expect(err).toMatch(/at readSecretsFile \(src\/tenancy\/secrets-file\.ts:\d+:\d+\)/)
  expect(err).toMatch(/at async startServer \(src\/commands\/serve\.ts:\d+:\d+\)/)
})
