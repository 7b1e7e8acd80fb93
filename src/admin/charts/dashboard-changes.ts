import { queryClient } from '../api/queries'
import { showProblem, showUndo } from '../ui/notices'
import { changeCharts, type SavedChart, savedChartsQuery } from './saved-chart'

type Change = (charts: SavedChart[]) => SavedChart[]

/** Shows a change of the dashboard at once, and takes it back when the server refuses it. Returns whether it is saved. */
async function changeDashboard(change: Change): Promise<boolean> {
  const before = queryClient.getQueryData(savedChartsQuery.queryKey) ?? []
  await queryClient.cancelQueries({ queryKey: savedChartsQuery.queryKey })
  queryClient.setQueryData(savedChartsQuery.queryKey, change(before))
  try {
    await changeCharts(change)
    return true
  } catch (error) {
    queryClient.setQueryData(savedChartsQuery.queryKey, before)
    showProblem(error)
    return false
  }
}

const insertAt = (charts: SavedChart[], index: number, chart: SavedChart) =>
  charts.toSpliced(Math.max(0, index), 0, chart)

/** Moves a chart to another position. */
export const moveChart = (id: string, to: number) =>
  changeDashboard((charts) => {
    const moved = charts.find((chart) => chart.id === id)
    const others = charts.filter((chart) => chart !== moved)
    return moved ? insertAt(others, to, moved) : charts
  })

/** Gives a chart a half or all of a line. */
export const resizeChart = (id: string, width: SavedChart['width']) =>
  changeDashboard((charts) => charts.map((chart) => (chart.id === id ? { ...chart, width } : chart)))

/** Takes a chart from the dashboard, which can be undone for a while. */
export async function removeChart({ id, title }: SavedChart) {
  const before = queryClient.getQueryData(savedChartsQuery.queryKey) ?? []
  const index = before.findIndex((chart) => chart.id === id)
  const removed = before[index]
  if (!removed) return
  const isRemoved = await changeDashboard((charts) => charts.filter((chart) => chart.id !== id))
  if (isRemoved)
    showUndo(`“${title}” was removed.`, () => changeDashboard((charts) => insertAt(charts, index, removed)))
}
