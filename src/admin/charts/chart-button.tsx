import { ActionIcon, Tooltip } from '@mantine/core'
import { IconChartBar } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { type ChartSearch, toChartFilters } from './chart-address'

/** Leads from a list to a chart of the entities that it shows. */
export const ChartButton = ({ blueprint, search }: { blueprint: string; search: ChartSearch }) => (
  <Tooltip label="Show these entities as a chart">
    <ActionIcon
      component={Link}
      variant="default"
      aria-label="Chart"
      to="/data/$blueprint/all/chart"
      params={{ blueprint } as never}
      search={toChartFilters(search) as never}
    >
      <IconChartBar size={16} />
    </ActionIcon>
  </Tooltip>
)
