import { databaseStatistics, engineOf, timeStatements } from './database-statistics'
import { createDb } from './db'
import type { GroupCommitWriter } from './group-commit'
import type { AfterCommit, DatabaseLocation, Db, OnVisible, Tx, WriteOptions } from './port'

/** What a unit of work writes to, and the reads of the same data. Statements that take longer than `slowAfter` (ms) are logged. */
type WrittenDatabase = { place: DatabaseLocation; writer: GroupCommitWriter; read: Db; slowAfter: number }

/** Runs a unit of work as one write, then what it registered for after the commit. Returns what the work returns. */
export async function runWork<T>(
  { place, writer, read, slowAfter }: WrittenDatabase,
  work: (tx: Tx) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  const began = performance.now()
  let actions: ((db: Db) => void)[] = []
  const begin = (executor: Parameters<Parameters<GroupCommitWriter['write']>[0]>[0]) => {
    // The engine may repeat the work, so its actions start over.
    actions = []
    const query = timeStatements(executor.query, place, slowAfter)
    const afterCommit: AfterCommit = (act) => void actions.push(act)
    const onVisible: OnVisible = (act) => executor.onVisible(() => act(read))
    const { wordIndex } = read
    return { ...createDb(query, { ...executor, afterCommit, onVisible }), wordIndex }
  }
  const { joint, ...others } = options ?? {}
  const result = await writer.write((executor) => work(begin(executor)), {
    ...others,
    ...(joint && { joint: { ...joint, run: (executor, inputs) => joint.run(begin(executor), inputs) } }),
  })
  databaseStatistics[engineOf(place)].writes.record((performance.now() - began) / 1_000)
  for (const act of actions) act(read)
  return result
}
