/** What the types of a blueprint are called. */
export type Names = { entity: string; properties: string; draft: string; change: string }

const namesOf = (key: string, number: number): Names => {
  const name =
    key.replace(/(?:^|[-_]+)([a-z0-9]?)/g, (_, first: string) => first.toUpperCase()) + (number > 1 ? number : '')
  return { entity: name, properties: `${name}Properties`, draft: `New${name}`, change: `${name}Change` }
}

/**
 * Names for the types of blueprints, by their keys: `order-items` are `OrderItems`, `NewOrderItems` and so on. Where one is
 * taken, by the words of `others` or by a blueprint that came before, all get a number.
 */
export function namesFor(keys: string[], others: string): Map<string, Names> {
  const taken = new Set(others.match(/\b[A-Z]\w*/g))
  const found = new Map<string, Names>()
  for (const key of keys) {
    let [number, names] = [1, namesOf(key, 1)]
    while (Object.values(names).some((name) => taken.has(name))) names = namesOf(key, ++number)
    for (const name of Object.values(names)) taken.add(name)
    found.set(key, names)
  }
  return found
}
