/** What the log says that is counted: faults that an operator should hear of, and what was mended. */
const FAULTS = [
  ...['abandoned-folder', 'backup-contents-mended', 'BACKUP_FAILED', 'BACKUPS_MISSING', 'DATABASE_DAMAGED'],
  ...['FILE_DESCRIPTORS_LOW', 'FILE_STORE_UNAVAILABLE', 'LOCAL_FILES_ON_SEVERAL_SERVERS', 'LOG_NOT_SHIPPED'],
  ...['restore-undone', 'STORAGE_FAILED', 'TENANT_DAMAGED', 'TENANT_ELSEWHERE', 'UNKNOWN_FOLDERS'],
]
const counts = new Map(FAULTS.map((fault) => [fault, 0]))
const FAULT_PATTERN = /^\{"level":"(?:warn|error)".*?"(?:what|event)":"([\w-]+)"/

/** Counts a line of the log in JSON, if it tells a fault. */
export function countFault(line: string) {
  const [, fault = ''] = FAULT_PATTERN.exec(line) ?? []
  const count = counts.get(fault)
  if (count !== undefined) counts.set(fault, count + 1)
}

/** Returns how many lines have told each fault since the process started. */
export const listFaultCounts = (): [fault: string, count: number][] => [...counts]
