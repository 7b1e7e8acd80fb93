import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { parseTzif } from './tzif'
import type { ZoneData } from './zone-data'

/** Where systems keep the time zone database. */
export const SYSTEM_FOLDER = '/usr/share/zoneinfo'

const ZONE_NAME = /^[A-Z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/
/** Names of files that are no zones: a placeholder of installers. */
const NO_ZONES = ['Factory']

/** Reads the release of a folder of compiled zones: the first line of `tzdata.zi`, or `+VERSION` as on macOS. */
export function readFolderVersion(folder: string): string | undefined {
  for (const [file, pattern] of [
    ['tzdata.zi', /^# version (\d{4}[a-z]+)/],
    ['+VERSION', /^(\d{4}[a-z]+)/],
  ] as const) {
    try {
      const version = pattern.exec(readFileSync(join(folder, file), 'latin1'))?.[1]
      if (version) return version
    } catch {} // the system keeps no such file
  }
}

/** Reads the zones of a folder of compiled zones (TZif). */
export function readZoneFolder(folder: string, version: string): ZoneData {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, sep).length).replaceAll(sep, '/'))
    .filter((name) => ZONE_NAME.test(name) && !NO_ZONES.includes(name))
  return {
    version,
    origin: folder,
    names,
    readRules(name) {
      try {
        return parseTzif(readFileSync(join(folder, name)))
      } catch {} // it is missing here
    },
  }
}
