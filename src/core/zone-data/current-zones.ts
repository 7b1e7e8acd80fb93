import { ConfigError } from '../config-error'
import { readPackedZones } from './packed-zones'
import type { ZoneData } from './zone-data'
import { readFolderVersion, readZoneFolder, SYSTEM_FOLDER } from './zone-folder'

let chosenFolder = ''
let current: ZoneData | undefined

/**
 * Takes the rules from a folder, whatever its version; without one, the newest that are at hand.
 * @throws ConfigError for a folder without zones
 */
export function useZoneFolder(folder: string) {
  chosenFolder = folder
  // Reading the rules takes some ms, which a start does not need.
  current = folder ? chooseZoneData() : undefined
}

/** Returns the rules of all zones: those of the chosen folder, else the newer of the system's and Atoll's own. */
export function getZoneData(): ZoneData {
  current ??= chooseZoneData()
  return current
}

function chooseZoneData(): ZoneData {
  const packed = readPackedZones()
  if (chosenFolder) return withPackedNames(openChosenFolder(chosenFolder), packed)
  const version = readFolderVersion(SYSTEM_FOLDER)
  const isNewer = version !== undefined && version > packed.version
  return isNewer ? withPackedNames(readZoneFolder(SYSTEM_FOLDER, version), packed) : packed
}

function openChosenFolder(folder: string): ZoneData {
  const problem = (reason: string) =>
    new ConfigError(
      `ATOLL_TIME_ZONES names "${folder}", ${reason}. Use a folder such as /usr/share/zoneinfo, with files like Europe/Lisbon.`,
    )
  const data = (() => {
    try {
      return readZoneFolder(folder, readFolderVersion(folder) ?? 'unknown')
    } catch (cause) {
      throw Object.assign(problem('which cannot be read'), { cause })
    }
  })()
  if (!data.names.some((name) => data.readRules(name))) throw problem('which has no compiled time zones')
  return data
}

/** Some systems leave out old names, such as US/Pacific: they then mean the zones that they mean in the package. */
function withPackedNames(data: ZoneData, packed: ReturnType<typeof readPackedZones>): ZoneData {
  return {
    ...data,
    names: [...new Set([...data.names, ...packed.names])],
    readRules: (name) =>
      data.readRules(name) ?? data.readRules(packed.links.get(name) ?? name) ?? packed.readRules(name),
  }
}
