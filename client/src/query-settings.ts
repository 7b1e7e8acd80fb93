/** What every query takes: whether it runs, and for how many ms its answer counts as fresh. */
export type QuerySettings = { enabled?: boolean; staleTime?: number }
