/** Each rank scores 1 / (60 + rank) (Cormack, Clarke and Büttcher, SIGIR 2009). */
const RANK_CONSTANT = 60

/** Merges rankings by reciprocal rank fusion: numbers that rank high in several of them come first, with their scores. */
export function scoreRankings(lists: number[][]): [item: number, score: number][] {
  const scores = new Map<number, number>()
  for (const list of lists)
    for (const [n, item] of list.entries()) scores.set(item, (scores.get(item) ?? 0) + 1 / (RANK_CONSTANT + n + 1))
  return [...scores].sort(([a, scoreA], [b, scoreB]) => scoreB - scoreA || a - b)
}
