// What creates keep of their rate while the first search of a blueprint is answered, which reads the words of all entities.
import { type Figures, measure, measureSequence } from './load'
import type { ListQuestion } from './questions'
import { createRandom } from './random'
import type { AtollSide } from './sides/atoll'

const CONNECTIONS = 16
const BODIES = 2_000

const EXPLAIN_PAUSE_MS = 1_000
const MAX_INDEXED_MS = 120_000

/** How long the search took, and how long it took until its words were indexed (ms). */
export type SearchBesideCreates = {
  alone: Figures
  beside: Figures
  ratio: number
  searchMs: number
  indexedMs: number
}

export async function measureSearchBesideCreates(
  side: AtollSide,
  rows: number,
  seconds: number,
  round: number,
): Promise<SearchBesideCreates> {
  const random = createRandom(`search ${round}`)
  const creates = Array.from({ length: BODIES }, () => side.toRequest({ kind: 'create', n: rows + random.below(1e6) })!)
  const needs = { writes: true, isJustImported: true, hasSingleIndexes: true }
  const load = { requests: creates, connections: CONNECTIONS, seconds }
  let alone: Figures
  {
    await using server = await side.start(needs)
    alone = await measure({ ...load, url: server.url, headers: server.headers })
  }
  await using server = await side.start(needs)
  const { url, headers } = server
  const question: ListQuestion = { kind: 'list', filters: [], words: [`${random.below(rows)}`] }
  const search = async () => {
    const startedAt = performance.now()
    const { max: searchMs } = await measureSequence(url, headers, [side.toRequest(question)!])
    while (!(await side.isIndexed(url, question)) && performance.now() - startedAt < MAX_INDEXED_MS)
      await Bun.sleep(EXPLAIN_PAUSE_MS)
    return { searchMs, indexedMs: performance.now() - startedAt }
  }
  const [beside, times] = await Promise.all([measure({ ...load, url, headers }), search()])
  return { alone, beside, ratio: beside.perSecond / alone.perSecond, ...times }
}
