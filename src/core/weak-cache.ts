/** Returns a function that computes a value once for each object and remembers it for as long as the object lives. */
export function weakCached<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const values = new WeakMap<Key, { value: Value }>()
  return (key) => {
    let entry = values.get(key)
    if (!entry) {
      entry = { value: compute(key) }
      values.set(key, entry)
    }
    return entry.value
  }
}
