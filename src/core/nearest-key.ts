/**
 * Returns the known key that was probably meant, or undefined: a key that differs only in case and separators, or by at
 * most `distance` edits.
 */
export function findNearestKey(key: string, known: readonly string[], distance = 2): string | undefined {
  const simplified = simplifyKey(key)
  const limit = simplified.length < 4 ? Math.min(1, distance) : distance
  let nearest: string | undefined
  let least = limit + 1
  for (const candidate of known) {
    const edits = editDistance(simplified, simplifyKey(candidate), limit)
    if (edits < least) [nearest, least] = [candidate, edits]
  }
  return nearest
}

const simplifyKey = (key: string) => key.toLowerCase().replace(/[-_ ]/g, '')

/**
 * Returns the optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours. Beyond
 * the limit it is Infinity.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return Infinity
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, n) => n)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Infinity
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1, swapped)
    }
    ;[before, last] = [last, row]
  }
  return last[b.length]!
}
