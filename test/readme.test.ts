import { expect, setDefaultTimeout, test } from 'bun:test'
import { createTempFolder, runAtoll, startAtoll } from './fakes/cli'

setDefaultTimeout(120_000)

/** The code blocks of a section of the README. */
async function blocksOf(heading: string) {
  const text = await Bun.file(new URL('../README.md', import.meta.url)).text()
  const section = text.split(/^## /m).find((part) => part.startsWith(heading)) ?? ''
  return [...section.matchAll(/^```\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)
}

test('the commands of the README section "Using it" work as printed', async () => {
  if (!Bun.which('curl') || !Bun.which('sh')) return console.warn('SKIPPED: the README is tried with curl and sh.')
  const [start = '', requests = '', transfers = ''] = await blocksOf('Using it')
  const [create = '', run] = start.trim().split('\n')
  expect(run).toBe('npx atoll serve')
  const at = { at: createTempFolder() }
  expect((await runAtoll(create.replace('npx atoll ', ''), at)).code).toBe(0)
  await using server = await startAtoll(at)
  const script = `set -e\n${requests}${transfers}`
    .replaceAll('localhost:3000', `127.0.0.1:${server.port}`)
    .replaceAll('curl ', 'curl --silent --show-error --fail-with-body --max-time 20 ')
  const { exitCode, stdout, stderr } = Bun.spawnSync(['sh', '-c', script], { cwd: at.at })
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
  expect(stdout.toString()).toContain('"title":"Walden"')
  expect(stdout.toString()).toContain('"imported":')
})
