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
  // Only cells near the diagonal can be within the limit. The cell `k` of the row `i` is in the column `i + k - limit`.
  const width = 2 * limit + 1
  let [before, last] = [[] as number[], Array.from({ length: width }, (_, k) => (k < limit ? Infinity : k - limit))]
  for (let i = 1; i <= a.length; i++) {
    const row: number[] = []
    for (let k = 0; k < width; k++) {
      const j = i + k - limit
      if (j < 1 || j > b.length) row.push(j === 0 ? i : Infinity)
      else {
        const replaced = last[k]! + (a[i - 1] === b[j - 1] ? 0 : 1)
        const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[k]! + 1 : Infinity
        row.push(Math.min(replaced, (last[k + 1] ?? Infinity) + 1, (row[k - 1] ?? Infinity) + 1, swapped))
      }
    }
    if (Math.min(...row) > limit) return Infinity
    ;[before, last] = [last, row]
  }
  return last[b.length - a.length + limit]!
}
