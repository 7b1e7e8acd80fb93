/** The folder of the backups of what tenants share. */
export const INSTALLATION_FOLDER = '.installation'

/** Returns the name of a backup's folder, which sorts by time and is valid on all systems. */
export const toFolderName = (created: string) => created.replaceAll(':', '-')

/** Returns when a backup was made by the name of its folder, or undefined for other folders (ms since 1970). */
export function parseFolderName(name: string): number | undefined {
  const [, date, hours, minutes, seconds] = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})Z$/.exec(name) ?? []
  return date ? Date.parse(`${date}T${hours}:${minutes}:${seconds}Z`) : undefined
}
