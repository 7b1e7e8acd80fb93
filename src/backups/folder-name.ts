/** The folder of the backups of what tenants share. */
export const INSTALLATION_FOLDER = '.installation'

/**
 * Returns the name of the folder of a backup or of a log, which sorts by time and is valid on all systems. Its number says
 * which is the later one of two, whatever the clock said when they were made.
 */
export const toFolderName = (created: string, number?: number) =>
  `${created.replaceAll(':', '-')}${number === undefined ? '' : `-${number}`}`

const NAME = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})Z(?:-(\d{1,15}))?$/

/** Returns when a backup was made by the name of its folder, or undefined for other folders (ms since 1970). */
export function parseFolderName(name: string): number | undefined {
  const [, date, hours, minutes, seconds] = NAME.exec(name) ?? []
  return date ? Date.parse(`${date}T${hours}:${minutes}:${seconds}Z`) : undefined
}

/** Returns the number in the name of a folder; 0 for those of earlier versions, which have none. */
export const numberOf = (name: string): number => Number(NAME.exec(name)?.[5] ?? 0)

/**
 * A folder in the order in which folders were made. `time` is what the clock said, at most what it said for later ones: a
 * clock that was ahead is known by those that were made after it was set right (ms since 1970).
 */
export type OrderedFolder = { name: string; time: number }

/** Returns those of some names that are of folders with a time, in the order in which they were made. */
export function orderFolders(names: string[]): OrderedFolder[] {
  const folders = names.flatMap((name) => {
    const time = parseFolderName(name)
    return time === undefined ? [] : [{ name, time }]
  })
  folders.sort((one, other) => numberOf(one.name) - numberOf(other.name) || one.time - other.time)
  return boundByLater(folders)
}

/** Bounds each time by the times of all later elements. */
export function boundByLater<T extends { time: number }>(elements: T[], bound = Number.POSITIVE_INFINITY): T[] {
  return elements
    .toReversed()
    .map((element) => {
      bound = Math.min(bound, element.time)
      return { ...element, time: bound }
    })
    .reverse()
}

/** Returns the number of the next folder beside others. */
export const nextNumber = (names: string[]): number => names.reduce((max, name) => Math.max(max, numberOf(name)), 0) + 1
