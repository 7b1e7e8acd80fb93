import { badRequest } from '../core/problem'
import type { Definition, DefinitionKind, KindName } from './kinds/definition-kind'

const PLACEHOLDER = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/

/** Returns the definition with every secret left out. */
export const withoutSecrets = (kind: DefinitionKind, definition: Definition): Definition =>
  kind.mapSecrets?.(definition, () => undefined) ?? definition

/** Returns the definition with the same text for every secret, so that only their places are compared. */
export const maskSecrets = (kind: DefinitionKind, definition: Definition): Definition =>
  kind.mapSecrets?.(definition, () => '') ?? definition

/** Returns the secrets of a definition by their paths, such as `headers.authorization`. */
export function listSecrets(kind: DefinitionKind, definition: Definition): Map<string, string> {
  const secrets = new Map<string, string>()
  kind.mapSecrets?.(definition, (path, value) => {
    secrets.set(toPathText(path), value)
    return value
  })
  return secrets
}

export const toPathText = (path: string[]) => path.join('.')

/** Returns the definition with placeholders such as `${CONNECTION_STRIPE_SECRET_KEY}`. `taken` are those in use. */
export function toPlaceholders(
  kindName: KindName,
  kind: DefinitionKind,
  label: string,
  definition: Definition,
  taken: Set<string>,
): Definition {
  if (!kind.mapSecrets) return definition
  return kind.mapSecrets(definition, (path) => {
    const base = [kindName, label, ...path].map(toVariablePart).join('_')
    let variable = base
    for (let number = 2; taken.has(variable); number++) variable = `${base}_${number}`
    taken.add(variable)
    return `\${${variable}}`
  })
}

const toVariablePart = (text: string) =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase()

/** Returns the name of the variable in a placeholder. @throws 400 for a secret that is written down in a file */
export function toVariable(file: string, path: string[], text: string): string {
  const [, variable] = PLACEHOLDER.exec(text) ?? []
  if (variable) return variable
  const message = `"${file}" has a secret at ${toPathText(path)}. Write a placeholder such as \${MY_SECRET} there, and pass its value in the environment.`
  return badRequest({ path: file, message })
}
