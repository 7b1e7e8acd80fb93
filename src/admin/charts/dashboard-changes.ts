import { queryClient } from '../api/queries'
import { showProblem, showUndo } from '../ui/notices'
import { changeCharts, type SavedChart, savedChartsQuery } from './saved-chart'

type Change = (charts: SavedChart[]) => SavedChart[]

/** Shows a change of the dashboard at once, and takes it back when the server refuses it. */
async function arrange(change: Change) {
  const before = queryClient.getQueryData(savedChartsQuery.queryKey) ?? []
  await queryClient.cancelQueries({ queryKey: savedChartsQuery.queryKey })
  queryClient.setQueryData(savedChartsQuery.queryKey, change(before))
  await changeCharts(change).catch((error) => {
    queryClient.setQueryData(savedChartsQuery.queryKey, before)
    showProblem(error)
  })
}

const insertAt = (charts: SavedChart[], at: number, chart: SavedChart) => [
  ...charts.slice(0, Math.max(0, at)),
  chart,
  ...charts.slice(Math.max(0, at)),
]

/** Moves a chart to the place of another one. */
export const moveChart = (id: string, to: number) =>
  arrange((charts) => {
    const moved = charts.find((chart) => chart.id === id)
    const others = charts.filter((chart) => chart !== moved)
    return moved ? insertAt(others, to, moved) : charts
  })

/** Gives a chart a half or all of a line. */
export const resizeChart = (id: string, width: SavedChart['width']) =>
  arrange((charts) => charts.map((chart) => (chart.id === id ? { ...chart, width } : chart)))

/** Takes a chart from the dashboard, which can be undone for a while. */
export async function removeChart({ id, title }: SavedChart) {
  const before = queryClient.getQueryData(savedChartsQuery.queryKey) ?? []
  const at = before.findIndex((chart) => chart.id === id)
  const removed = before[at]
  if (!removed) return
  await arrange((charts) => charts.filter((chart) => chart.id !== id))
  showUndo(`“${title}” was removed.`, () => arrange((charts) => insertAt(charts, at, removed)))
}
