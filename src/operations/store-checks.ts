import { findTargetProblem } from '../backups/target-check'
import { openTarget } from '../backups/targets'
import { config } from '../config'
import { getErrorChain } from '../core/log'
import { Problem } from '../core/problem'
import { createS3Store } from '../files/stores/s3'
import type { Check } from './checks'

/** Somebody waits for the checks. */
const CHECK_PATIENCE = { stallMs: 5_000, retryDelaysMs: [500] }
const NO_CONTENT = '0'.repeat(64)

/** Checks whether the stores of backups and of files, where the settings name them, can be read, and have what they should. */
export async function checkStores(): Promise<Check[]> {
  const checks: Check[] = []
  if (config.ATOLL_BACKUP_TO) {
    const problem = await findTargetProblem(openTarget(config.ATOLL_BACKUP_TO, CHECK_PATIENCE))
    const message = problem ?? 'readable, and belongs to this installation'
    checks.push({ check: 'backup target', ok: !problem, message })
  }
  if (config.ATOLL_FILES_URL) {
    const problem = await findFileStoreProblem(config.ATOLL_FILES_URL)
    checks.push({ check: 'file store', ok: !problem, message: problem ?? 'readable' })
  }
  return checks
}

async function findFileStoreProblem(url: string): Promise<string | undefined> {
  try {
    await createS3Store(url, CHECK_PATIENCE).has('doctor', NO_CONTENT)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return `${url} cannot be read: ${(getErrorChain(error).at(-1) as Error).message}.`
  }
}
