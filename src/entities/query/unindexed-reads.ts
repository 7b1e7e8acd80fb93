import { availableParallelism } from 'node:os'

/** Per index: more concurrent reads would only delay each other and the build of the index. */
const MAX_UNINDEXED_READS = Math.max(1, availableParallelism() - 1)
const CHECK_INTERVAL_MS = 20

type Reads = { running: number; check: Promise<void> | undefined }
const readsByIndex = new Map<string, Reads>()

/**
 * Waits until few lists run without an index, or until `isMissing` says that the index is ready. Returns a function that ends
 * the read, or undefined when the index is ready.
 */
export async function beginUnindexedRead(
  index: string,
  isMissing: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  while (await isMissing()) {
    // The read itself notices that its client disconnected.
    if (signal.aborted) return () => {}
    const reads = readsByIndex.get(index) ?? { running: 0, check: undefined }
    if (reads.running < MAX_UNINDEXED_READS) {
      readsByIndex.set(index, reads)
      reads.running++
      return () => {
        if (--reads.running === 0) readsByIndex.delete(index)
      }
    }
    // All waiting reads share a timer.
    reads.check ??= Bun.sleep(CHECK_INTERVAL_MS).then(() => {
      reads.check = undefined
    })
    await reads.check
  }
}
