import { startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'

const CHUNK_COUNT = 20_000
const QUESTION_COUNT = 200
const UPLOAD_BYTES = 1 << 20 // bytes

const database = process.argv[2] === 'postgres' ? await startPostgres() : undefined
const folder = createTempFolder('bench')
Object.assign(process.env, { ATOLL_TENANTS: folder, ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_RATE_LIMITS: 'off' })
if (database) process.env.ATOLL_DATABASE_URL = database.url

// The settings are read once, so what reads them comes later.
const { createKnowledgeFixture } = await import('../ai/knowledge/knowledge-fixtures')
const { databases } = await import('../../src/tenancy/databases')

const child = Bun.spawn([process.execPath, `${import.meta.dir}/../fakes/model-process.ts`], {
  ...{ stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' },
})
const reader = child.stdout.getReader()
const modelServerUrl = new TextDecoder().decode((await reader.read()).value).trim()

let seed = 1
const random = () => {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
  return seed / 0x7fffffff
}
/** Words as often as in a language: the n-th of them n times less than the first. */
const word = () => `w${Math.floor(30_000 ** random()).toString(36)}`
const sentence = () => `${Array.from({ length: 12 }, word).join(' ')}.`
const section = (n: number) => `## Section ${n}\n\n${Array.from({ length: 15 }, sentence).join(' ')}\n\n`
const quantile = (list: number[], share = 0.5) => list.toSorted((a, b) => a - b)[Math.floor(list.length * share)]!
const print = (what: string, value: unknown) => console.log(`${what.padEnd(52)} ${value}`)
const ms = (value: number) => `${value.toFixed(1)} ms`

const archiveFixture = await createKnowledgeFixture()
for (const [what, model] of [
  ['words alone', undefined],
  ['words and vectors', 'words-768'],
] as const) {
  const source = await archiveFixture.source(modelServerUrl, model)
  const agent = await archiveFixture.agent(['tenant'], { sourceId: source })
  const store = await archiveFixture.store('admin', agent._id, 'tenant', undefined, source)
  let text = ''
  for (let n = 0; text.length < UPLOAD_BYTES; n++) text += section(n)
  const began = performance.now()
  await archiveFixture.upload('admin', store, text.slice(0, UPLOAD_BYTES), 'book.md', source)
  print(`upload of 1 MiB of Markdown, ${what}`, ms(performance.now() - began))
  const chunks = async () => {
    const [[count]] = (await archiveFixture.tenant.db.query('select chunks from vector_stores where _id = ?', [
      store,
    ])) as [[number]]
    return count
  }
  for (let left = CHUNK_COUNT - (await chunks()); left > 0; left = CHUNK_COUNT - (await chunks()))
    await archiveFixture.upload(
      'admin',
      store,
      Array.from({ length: Math.min(left, 1_000) }, (_, n) => section(n)).join(''),
      'more.md',
      source,
    )
  const ask = async () => {
    const question = Array.from({ length: 10 }, word).join(' ')
    const asked = performance.now()
    const { citations } = await archiveFixture.retrieve('user', agent, question)
    if (citations.length < 5) throw new Error(`Nothing was found for ${question}.`)
    return performance.now() - asked
  }
  print(`${await chunks()} chunks, the first question, ${what}`, ms(await ask()))
  let longest = 0
  let last = performance.now()
  const beat = setInterval(() => {
    longest = Math.max(longest, performance.now() - last - 1)
    last = performance.now()
  }, 1)
  const times: number[] = []
  for (let n = 0; n < QUESTION_COUNT; n++) times.push(await ask())
  clearInterval(beat)
  print(`a question, ${what}: p50, p95`, `${ms(quantile(times))}, ${ms(quantile(times, 0.95))}`)
  print('  others waited at most', ms(longest))
  print('  memory', `${process.memoryUsage().rss >> 20} MB`)
}
await databases.close()
child.kill()
await database?.stop()
process.exit()
