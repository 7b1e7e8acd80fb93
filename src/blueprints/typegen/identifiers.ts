/** What the types of a blueprint are called. */
export type TypeIdentifiers = { entity: string; properties: string; draft: string; change: string }

const toPascalCase = (key: string) => key.replace(/(?:^|[-_]+)([a-z0-9]?)/g, (_, first: string) => first.toUpperCase())
const toTypeIdentifiers = (name: string): TypeIdentifiers => ({
  entity: name,
  properties: `${name}Properties`,
  draft: `New${name}`,
  change: `${name}Change`,
})

/**
 * Names for the types of blueprints, by their keys: `order-items` are `OrderItems`, `NewOrderItems` and so on. Where one is
 * taken, by the words of `others` or by a blueprint that came before, all get a number.
 */
export function assignIdentifiers(keys: string[], others: string): Map<string, TypeIdentifiers> {
  const usedIdentifiers = new Set(others.match(/\b[A-Z]\w*/g))
  const attemptsByName = new Map<string, number>()
  const identifiers = new Map<string, TypeIdentifiers>()
  for (const key of keys) {
    const name = toPascalCase(key)
    let names: TypeIdentifiers
    do {
      const number = (attemptsByName.get(name) ?? 0) + 1
      attemptsByName.set(name, number)
      names = toTypeIdentifiers(number > 1 ? `${name}${number}` : name)
    } while (Object.values(names).some((one) => usedIdentifiers.has(one)))
    for (const one of Object.values(names)) usedIdentifiers.add(one)
    identifiers.set(key, names)
  }
  return identifiers
}
