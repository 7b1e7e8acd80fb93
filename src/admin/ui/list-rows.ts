import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query'

const PAGE_SIZE = 100
/** A page is fetched when so few rows remain below the view. */
const ROWS_AHEAD = 30

/** How a page of a list is asked for: lists that grow at their head by a cursor, others by the number of the page. */
export type PageRequest = { limit: number; page?: number; $after?: string }

type Page<Row> = { rows: Row[]; next?: PageRequest }

/** Returns the request for the page after this one, as the header `Link` names it, or undefined. */
function readNextPage(response: Response): PageRequest | undefined {
  const next = /<([^>]*)>;\s*rel="?next"?/.exec(response.headers.get('link') ?? '')?.[1]
  if (!next) return
  const parameters = new URL(next, location.origin).searchParams
  const [after, page] = [parameters.get('$after'), parameters.get('page')]
  return { limit: PAGE_SIZE, ...(after ? { $after: after } : { page: Number(page) }) }
}

/** The rows of a list, for `DataTable`: its pages are fetched when they come into view. */
export function useListRows<Row>(
  queryKey: readonly unknown[],
  fetchPage: (request: PageRequest) => Promise<{ data?: Row[]; response: Response }>,
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam }): Promise<Page<Row>> => {
      const { data = [], response } = await fetchPage(pageParam)
      return { rows: data, next: readNextPage(response) }
    },
    initialPageParam: { limit: PAGE_SIZE } as PageRequest,
    getNextPageParam: ({ next }) => next,
    select: (data: InfiniteData<Page<Row>, PageRequest>) => data.pages.flatMap(({ rows }) => rows),
  })
  const rows = query.data ?? []
  return {
    rows,
    count: rows.length,
    hasMore: query.hasNextPage,
    isFetchingMore: query.isFetchingNextPage,
    fetchMore: () => void query.fetchNextPage(),
    isEmpty: query.isSuccess && rows.length === 0,
    error: query.error,
    rowAt: (index: number): Row | undefined => rows[index],
    onRangeChange: (_first: number, last: number) => {
      if (last > rows.length - ROWS_AHEAD && query.hasNextPage && !query.isFetching) void query.fetchNextPage()
    },
  }
}
