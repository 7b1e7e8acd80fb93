/**
 * Compares two values of a target, both numbers or both texts, as the databases do: texts by their code points, where
 * JavaScript would compare UTF-16 code units.
 */
export function compareValues(one: string | number, other: string | number): number {
  if (one === other) return 0
  if (typeof one === 'number' || typeof other === 'number') return one < other ? -1 : 1
  let at = 0
  while (one.charCodeAt(at) === other.charCodeAt(at)) at++
  return (one.codePointAt(at) ?? -1) - (other.codePointAt(at) ?? -1)
}
