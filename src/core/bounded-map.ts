/** A map with at most `maxEntries` entries: when there are more, the entry that was added first is removed. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(private readonly maxEntries: number) {
    super()
  }

  override set(key: Key, value: Value) {
    super.set(key, value)
    if (this.size > this.maxEntries) this.delete(this.keys().next().value!)
    return this
  }
}
