// `bun test/bench/definitions.ts [definitions]`: how long a diff takes, and how soon a saved file is visible in the API
// with `atoll dev`, for a folder of 200 definitions.
import { join } from 'node:path'
import { SOURCE_COMMAND } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { createTempFolder } from '../temp-folder'
import { waitUntil } from '../wait-until'

const COUNT = Number(process.argv[2] ?? 200)
const SAVES = 21

const at = createTempFolder('definitions')
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const save = (path: string, content: object | string) =>
  Bun.write(join(at, 'definitions', path), typeof content === 'string' ? content : JSON.stringify(content))

for (let n = 0; n < COUNT; n += 4) {
  const fields = Array.from({ length: 10 }, (_, field) => ({ key: `f${field}`, type: 'string' }))
  await save(`blueprints/b${n}.json`, { name: `B${n}`, fields })
  await save(`lambdas/l${n}.ts`, `export default () => ${n}\n`)
  await save(`integrations/i${n}.json`, { trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: `l${n}` } })
  await save(`blocks/k${n}.json`, { content: 'text '.repeat(200) })
}
await save('configurations/nav.json', { public: true, metadata: { n: 0 } })

const port = await findFreePort()
const child = Bun.spawn([...SOURCE_COMMAND, 'dev', 'definitions'], {
  cwd: at,
  env: { PATH: process.env.PATH, ATOLL_PORT: `${port}`, ATOLL_LOG_LEVEL: 'error', ATOLL_RATE_LIMITS: 'off' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  let printed = ''
  const reading = (async () => {
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) printed += chunk
  })()
  const began = performance.now()
  await waitUntil(
    () => printed,
    (all) => all.includes('Watching'),
    300_000,
  )
  console.log(`start with ${COUNT} new definitions: ${Math.round(performance.now() - began)} ms`)

  const readNav = async () =>
    (await (await fetch(`http://127.0.0.1:${port}/api/configurations/nav`)).json()) as { metadata: { n: number } }
  const visible: number[] = []
  for (let n = 1; n <= SAVES; n++) {
    await Bun.sleep(200)
    const savedAt = performance.now()
    await save('configurations/nav.json', { public: true, metadata: { n } })
    await waitUntil(readNav, ({ metadata }) => metadata.n === n)
    visible.push(performance.now() - savedAt)
  }
  console.log(`saved until visible: ${Math.round(median(visible))} ms, at most ${Math.round(Math.max(...visible))} ms`)
  child.kill()
  await child.exited
  await reading
} finally {
  child.kill()
}

// The same folder in this process, without the start of a command.
process.env.ATOLL_TENANTS = join(at, 'tenants')
await import('../../src/app')
const { diffFolder } = await import('../../src/definitions/folder-push')
const { openLocalTarget } = await import('../../src/definitions/target')
const { databases } = await import('../../src/tenancy/databases')
const target = await openLocalTarget('main')
const diffs: number[] = []
for (let n = 0; n < 11; n++) {
  const began = performance.now()
  await diffFolder(target, join(at, 'definitions'))
  diffs.push(performance.now() - began)
}
console.log(`diff of ${COUNT} definitions: ${Math.round(diffs[0]!)} ms at first, then ${Math.round(median(diffs))} ms`)
await databases.close()
