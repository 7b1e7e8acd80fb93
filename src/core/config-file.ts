import { readFileSync } from 'node:fs'
import { ConfigError } from './config-error'

/** Returns the settings in atoll.json of the current folder; none without that file. @throws ConfigError */
export function readConfigFile(): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync('atoll.json', 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return {}
    throw new ConfigError(`atoll.json cannot be read: ${(error as Error).message}`)
  }
  return parseConfigFile(text)
}

function parseConfigFile(text: string): Record<string, unknown> {
  try {
    const settings: unknown = JSON.parse(text)
    if (settings !== null && typeof settings === 'object' && !Array.isArray(settings))
      return settings as Record<string, unknown>
  } catch {
    throw new ConfigError('atoll.json is not JSON. Check its quotes, commas and brackets.')
  }
  throw new ConfigError('atoll.json must contain an object of settings.')
}
