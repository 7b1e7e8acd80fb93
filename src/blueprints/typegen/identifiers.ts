/** The names of the types of a blueprint. */
export type TypeIdentifiers = { entity: string; properties: string; draft: string; change: string }

const toPascalCase = (key: string) => key.replace(/(?:^|[-_]+)([a-z0-9]?)/g, (_, first: string) => first.toUpperCase())
const toTypeIdentifiers = (name: string): TypeIdentifiers => ({
  entity: name,
  properties: `${name}Properties`,
  draft: `New${name}`,
  change: `${name}Change`,
})

const COMMENT_OR_LITERAL = /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`((?:\\.|[^`\\])*)`/g

/** Returns the capitalized identifiers of a TypeScript source, without the words of its comments and literals. */
function listIdentifiers(source: string): Set<string> {
  const code = source.replace(COMMENT_OR_LITERAL, (_, template = '') => ` ${template.match(/\$\{[^}]*\}/g) ?? ''} `)
  return new Set(code.match(/\b[A-Z]\w*/g))
}

/**
 * Returns names for the types of blueprints by key: `order-items` becomes `OrderItems`, `NewOrderItems` and so on. When
 * one of them is taken, by an identifier of the file's `source` or by an earlier blueprint, all names of the blueprint
 * get a number.
 */
export function assignIdentifiers(keys: string[], source: string): Map<string, TypeIdentifiers> {
  const usedIdentifiers = listIdentifiers(source)
  const attemptsByName = new Map<string, number>()
  const identifiers = new Map<string, TypeIdentifiers>()
  for (const key of keys) {
    const name = toPascalCase(key)
    let names: TypeIdentifiers
    do {
      const number = (attemptsByName.get(name) ?? 0) + 1
      attemptsByName.set(name, number)
      names = toTypeIdentifiers(number > 1 ? `${name}${number}` : name)
    } while (Object.values(names).some((identifier) => usedIdentifiers.has(identifier)))
    for (const identifier of Object.values(names)) usedIdentifiers.add(identifier)
    identifiers.set(key, names)
  }
  return identifiers
}
