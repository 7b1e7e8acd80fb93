import { sha256 } from '../core/crypto'
import type { Definition, DefinitionKind } from './kinds/definition-kind'
import { maskSecrets } from './secrets'

/** Returns a definition as it is compared: normalized, without defaults, with sorted keys. */
export function canonicalize(kind: DefinitionKind, definition: Definition): Definition {
  const { normalize = (same) => same, defaults } = kind
  const stated = Object.entries(normalize(definition)).filter(
    ([key, value]) => value !== undefined && !(key in defaults && Bun.deepEquals(value, defaults[key])),
  )
  return sortKeys(Object.fromEntries(stated)) as Definition
}

/** Returns JSON with sorted keys. The same value has the same text. */
export const formatJson = (value: unknown) => `${JSON.stringify(sortKeys(value), null, 2)}\n`

/** Returns a version of a canonical definition, which tells nothing of its secrets. */
export const versionOf = (kind: DefinitionKind, name: string | null, definition: Definition): string =>
  sha256(JSON.stringify([name, maskSecrets(kind, definition)])).slice(0, 16)

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!value || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, part]) => part !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sortKeys(part)]),
  )
}
