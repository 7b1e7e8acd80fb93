/** What a rank counts for less than the one before: 1 / (60 + rank) (Cormack, Clarke and Büttcher, SIGIR 2009). */
const RANK_CONSTANT = 60

/** Several orders as one, by reciprocal rank fusion: what stands high in several of them comes first. */
export function fuseRankings(lists: number[][]): number[] {
  const scores = new Map<number, number>()
  for (const list of lists)
    for (const [n, one] of list.entries()) scores.set(one, (scores.get(one) ?? 0) + 1 / (RANK_CONSTANT + n + 1))
  return [...scores].sort(([a, one], [b, other]) => other - one || a - b).map(([one]) => one)
}
