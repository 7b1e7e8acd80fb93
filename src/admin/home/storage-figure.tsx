import { useQuery } from '@tanstack/react-query'
import { installationQuery } from '../api/queries'
import { formatBytes } from '../ui/format-bytes'
import { FigureGroup, FigureRow } from './figure-row'

/** How much the database of the tenant takes. */
export function StorageFigure() {
  const { data } = useQuery(installationQuery)
  if (!data?.databaseBytes) return null
  return (
    <FigureGroup title="Storage">
      <FigureRow to="/data" value={formatBytes(data.databaseBytes)} label="in the database" />
    </FigureGroup>
  )
}
