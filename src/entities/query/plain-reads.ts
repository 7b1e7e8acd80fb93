import { availableParallelism } from 'node:os'

/** Of a kind at once: more of them would only keep each other, and the build of the index, waiting. */
const MAX_PLAIN_READS = Math.max(1, availableParallelism() - 1)
const CHECK_INTERVAL_MS = 20

type Reads = { running: number; check: Promise<void> | undefined }
const readsByIndex = new Map<string, Reads>()

/**
 * Waits until few lists are read without an index, or until the index is there. Returns the function that ends such a
 * read, or undefined when `isMissing` says that the index is there.
 */
export async function beginPlainRead(
  index: string,
  isMissing: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  while (await isMissing()) {
    // The read itself notices that its client is gone.
    if (signal.aborted) return () => {}
    const reads = readsByIndex.get(index) ?? { running: 0, check: undefined }
    if (reads.running < MAX_PLAIN_READS) {
      readsByIndex.set(index, reads)
      reads.running++
      return () => {
        if (--reads.running === 0) readsByIndex.delete(index)
      }
    }
    // One timer for all that wait.
    reads.check ??= Bun.sleep(CHECK_INTERVAL_MS).then(() => {
      reads.check = undefined
    })
    await reads.check
  }
}
