import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { childrenOf, memoryOf as memory } from '../fakes/child-processes'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { waitUntil } from '../wait-until'
import { type Figures, measure } from './load'
import { product, productsBlueprint } from './sample-data'

const SECONDS_PER_ROUND = 4
const GREETING_CODE = `export default async ({ body }: { body: { name: string } }) => ({ greeting: 'Hello ' + body.name })`

/** What lambdas cost: the first one, those after it, and what reads of entities notice of one that never ends. */
async function measureLambdas(say: (text: string) => void) {
  const at = createTempFolder()
  const report: Record<string, unknown> = {}
  const surroundings = { at, env: { ATOLL_DURABILITY: 'normal', ATOLL_RATE_LIMITS: 'off' } }
  for (const tenant of ['acme', 'other']) await createTenantByCli(surroundings, tenant)
  {
    await using server = await startAtoll(surroundings)
    const headersOf = async (tenant: string) => ({
      ...(await signIn(server.url, tenant)),
      'content-type': 'application/json',
    })
    const [headers, others] = [await headersOf('acme'), await headersOf('other')]
    const send = async (path: string, body: object, by: Record<string, string> = headers) =>
      (await fetch(server.url + path, { method: 'POST', headers: by, body: JSON.stringify(body) })).json() as Promise<
        Record<string, string>
      >
    const processes = () => childrenOf(server.pid)
    say(`before the first lambda: ${memory(server.pid)} MB, ${processes().length} processes for lambdas`)
    const { _id } = await send('/api/lambdas', { name: 'greet', code: GREETING_CODE })
    const path = `/api/lambdas/${_id}/execute`
    const input = { body: { name: 'Ada' } }

    const colds: number[] = []
    for (let n = 0; n < 9; n++) {
      for (const pid of processes()) process.kill(pid, 'SIGKILL')
      await waitUntil(() => !processes().length)
      const began = performance.now()
      await send(path, input)
      colds.push(performance.now() - began)
    }
    colds.sort((one, other) => one - other)
    report.cold = { p50: colds[4], most: colds.at(-1) }
    say(`the first of a process: p50 ${colds[4]!.toFixed(0)} ms, most ${colds.at(-1)!.toFixed(0)} ms`)

    const firsts: number[] = []
    for (let n = 0; n < 9; n++) {
      const fresh = await send('/api/lambdas', { name: `fresh${n}`, code: `${GREETING_CODE} // ${n}` })
      const began = performance.now()
      await send(`/api/lambdas/${fresh._id}/execute`, input)
      firsts.push(performance.now() - began)
    }
    firsts.sort((one, other) => one - other)
    report.first = { p50: firsts[4], most: firsts.at(-1) }
    say(`the first run of a lambda: p50 ${firsts[4]!.toFixed(0)} ms, most ${firsts.at(-1)!.toFixed(0)} ms`)

    const load = { url: server.url, headers, method: 'POST' as const, paths: [path], bodies: [JSON.stringify(input)] }
    // Until the engine is as fast as it gets.
    await measure({ ...load, connections: 4, seconds: SECONDS_PER_ROUND })
    for (const connections of [1, 4, 16]) {
      const figures = await measure({ ...load, connections, seconds: SECONDS_PER_ROUND })
      report[`warm, ${connections} at once`] = figures
      say(`warm, ${connections} at once: ${formatFigures(figures)}`)
    }
    const sizes = processes().map(memory)
    report.memory = { server: memory(server.pid), processes: sizes }
    say(`memory: ${memory(server.pid)} MB, of each process for lambdas ${sizes.join(', ')} MB`)

    await send('/api/blueprints', productsBlueprint, others)
    const entities = '/api/blueprints/products/entities'
    const { identifier } = await send(entities, product(1), others)
    const reads = { url: server.url, headers: others, method: 'GET' as const, paths: [`${entities}/${identifier}`] }
    const loop = await send('/api/lambdas', {
      name: 'loop',
      code: 'export default () => { for (;;); }',
      timeoutMs: 30_000,
    })
    const quiet: Figures[] = []
    const beside: Figures[] = []
    for (let round = 0; round < 3; round++) {
      quiet.push(await measure({ ...reads, connections: 8, seconds: SECONDS_PER_ROUND }))
      const looping = send(`/api/lambdas/${loop._id}/execute`, {})
      beside.push(await measure({ ...reads, connections: 8, seconds: SECONDS_PER_ROUND }))
      for (const pid of processes()) process.kill(pid, 'SIGKILL')
      await looping
    }
    const middle = (list: Figures[]) => list.sort((one, other) => one.p99 - other.p99)[1]!
    report.reads = { quiet: middle(quiet), beside: middle(beside) }
    say(`reads of an entity: ${formatFigures(middle(quiet))}`)
    say(`the same beside a lambda that never ends: ${formatFigures(middle(beside))}`)
  }
  rmSync(at, { recursive: true })
  return report
}

const formatFigures = ({ perSecond, p50, p99, errors }: Figures) =>
  `${Math.round(perSecond)}/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms${errors ? `, ${errors} ERRORS` : ''}`

const report = await measureLambdas((text) => console.log(text))
mkdirSync('test/bench/results', { recursive: true })
writeFileSync('test/bench/results/lambdas.json', `${JSON.stringify(report, null, 2)}\n`)
process.exit()
