/** What the types of a blueprint are called. */
export type Names = { entity: string; properties: string; draft: string; change: string }

const nameOf = (key: string) => key.replace(/(?:^|[-_]+)([a-z0-9]?)/g, (_, first: string) => first.toUpperCase())
const namesOf = (name: string): Names => ({
  entity: name,
  properties: `${name}Properties`,
  draft: `New${name}`,
  change: `${name}Change`,
})

/**
 * Names for the types of blueprints, by their keys: `order-items` are `OrderItems`, `NewOrderItems` and so on. Where one is
 * taken, by the words of `others` or by a blueprint that came before, all get a number.
 */
export function namesFor(keys: string[], others: string): Map<string, Names> {
  const taken = new Set(others.match(/\b[A-Z]\w*/g))
  const tried = new Map<string, number>()
  const found = new Map<string, Names>()
  for (const key of keys) {
    const name = nameOf(key)
    let names: Names
    do {
      const number = (tried.get(name) ?? 0) + 1
      tried.set(name, number)
      names = namesOf(number > 1 ? `${name}${number}` : name)
    } while (Object.values(names).some((one) => taken.has(one)))
    for (const one of Object.values(names)) taken.add(one)
    found.set(key, names)
  }
  return found
}
