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

const chooseZoneData = (): ZoneData =>
  chosenFolder ? withPackedNames(openChosenFolder(chosenFolder), readPackedZones()) : chooseNewerZones(SYSTEM_FOLDER)

/** Returns the rules of a folder if its release is newer than the one in Atoll, else Atoll's own. */
export function chooseNewerZones(folder: string): ZoneData {
  const packed = readPackedZones()
  const version = readFolderVersion(folder)
  const isNewer = version !== undefined && version > packed.version
  return isNewer ? withPackedNames(readZoneFolder(folder, version), packed) : packed
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
