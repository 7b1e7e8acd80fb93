// What creates keep of their rate while the first search of a blueprint is answered, which reads the words of all entities.
import { type Figures, measure } from './load'
import { createRandom } from './random'
import type { Side } from './sides/side'

const CONNECTIONS = 16
const BODIES = 2_000

export type SearchBesideCreates = { alone: Figures; beside: Figures; ratio: number; searchMs: number }

export async function measureSearchBesideCreates(
  side: Side,
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
  const search = async () => {
    const startedAt = performance.now()
    const words = [`${random.below(rows)}`]
    const { path } = side.toRequest({ kind: 'list', filters: [], words })!
    for (;;) {
      const response = await fetch(url + path, { headers })
      await response.arrayBuffer()
      if (response.status !== 503) return performance.now() - startedAt
    }
  }
  const [beside, searchMs] = await Promise.all([measure({ ...load, url, headers }), search()])
  return { alone, beside, ratio: beside.perSecond / alone.perSecond, searchMs }
}
