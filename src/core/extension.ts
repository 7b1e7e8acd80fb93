/** A value that an area provides for an extension point of another area. It takes effect with `connect`. */
export type Provision = { point: object; value: unknown }

type Contribution<T> = { by: string; value: T }

/** Returns functions that define extension points, and `connect`, which connects all of them together. */
export function createExtensionPoints() {
  const prepareByPoint = new Map<object, (contributions: Contribution<never>[]) => () => void>()

  function definePoint<Given, Read>(name: string, collect: (contributions: Contribution<Given>[]) => Read) {
    let connected: { value: Read } | undefined
    const point = {}
    prepareByPoint.set(point, (contributions) => {
      const value = collect(contributions)
      return () => {
        connected = { value }
      }
    })
    const read = () => {
      if (!connected) throw new Error(`"${name}" is used before the areas are composed. Import src/app.ts first.`)
      return connected.value
    }
    return Object.assign(read, { provide: (value: Given): Provision => ({ point, value }) })
  }

  return {
    /**
     * Declares a value that exactly one area provides. Calling the slot returns the value.
     * @throws when it is called before the areas are composed
     */
    slot: <T>(name: string) =>
      definePoint(name, (contributions: Contribution<T>[]) => {
        const [first, second] = contributions
        if (!first) throw new Error(`Nothing provides "${name}". Add the area that does so to src/app.ts.`)
        if (second) throw new Error(`Both "${first.by}" and "${second.by}" provide "${name}". Only one area may.`)
        return first.value
      }),

    /** Declares a list to which any number of areas contribute. Calling it returns the list, in the order of the areas. */
    extensions: <T>(name: string) =>
      definePoint(name, (contributions: Contribution<readonly T[]>[]): readonly T[] =>
        contributions.flatMap(({ value }) => value),
      ),

    /** Declares a map to which areas add entries. Calling it returns the map; two areas cannot add the same key. */
    registry: <T>(name: string) =>
      definePoint(name, (contributions: Contribution<Record<string, T>>[]): ReadonlyMap<string, T> => {
        const entries = new Map<string, T>()
        const providers = new Map<string, string>()
        for (const { by, value } of contributions)
          for (const [key, entry] of Object.entries(value)) {
            if (entries.has(key)) throw new Error(`Both "${providers.get(key)}" and "${by}" add "${key}" to "${name}".`)
            entries.set(key, entry)
            providers.set(key, by)
          }
        return entries
      }),

    /**
     * Connects all extension points with their provided values, which replace the earlier ones.
     * @throws when no area or more than one provides a slot, or a key is added twice; then nothing changes
     */
    connect(providers: { name: string; provides: Provision[] }[]) {
      const contributions = new Map<object, Contribution<never>[]>()
      for (const { name, provides } of providers)
        for (const { point, value } of provides) {
          const all = contributions.get(point) ?? []
          contributions.set(point, [...all, { by: name, value: value as never }])
        }
      const commits = [...prepareByPoint].map(([point, prepare]) => prepare(contributions.get(point) ?? []))
      for (const commit of commits) commit()
    },
  }
}

export const { slot, extensions, registry, connect } = createExtensionPoints()
