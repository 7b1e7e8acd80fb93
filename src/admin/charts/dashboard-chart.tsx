import { useSortable } from '@dnd-kit/sortable'
import { CSS } from '@dnd-kit/utilities'
import { ActionIcon, Menu, Text } from '@mantine/core'
import {
  IconArrowDown,
  IconArrowsHorizontal,
  IconArrowUp,
  IconDots,
  IconGripVertical,
  IconList,
  IconPencil,
  IconTrash,
} from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { Blueprint } from '../api/schema'
import { toChartSearch } from './chart-address'
import { ChartView } from './chart-view'
import { CHART_KINDS } from './chart-words'
import classes from './dashboard.module.css'
import { moveChart, removeChart, resizeChart } from './dashboard-changes'
import type { SavedChart } from './saved-chart'

type DashboardChartProps = { chart: SavedChart; blueprint?: Blueprint; index: number; isLast: boolean }

/** One chart of the dashboard, with the menu that changes it. */
export function DashboardChart({ chart, blueprint, index, isLast }: DashboardChartProps) {
  const { id, title, kind, width } = chart
  const sortable = useSortable({ id })
  const isKnownKind = CHART_KINDS.some(({ value }) => value === kind)
  return (
    <figure
      ref={sortable.setNodeRef}
      className={`${classes.chart} ${width === 'full' ? classes.full : ''} ${sortable.isDragging ? classes.dragged : ''}`}
      style={{ transform: CSS.Translate.toString(sortable.transform), transition: sortable.transition }}
      aria-label={title}
    >
      <figcaption className={classes.caption}>
        <span className={classes.title} title={title}>
          {title}
        </span>
        <ActionIcon
          {...sortable.attributes}
          {...sortable.listeners}
          className={classes.handle}
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={`Move ${title}`}
        >
          <IconGripVertical size={14} />
        </ActionIcon>
        <ChartMenu chart={chart} index={index} isLast={isLast} />
      </figcaption>
      {!blueprint && <Text c="dimmed">The blueprint “{chart.blueprint}” does not exist, or you may not read it.</Text>}
      {blueprint && !isKnownKind && <Text c="dimmed">This version cannot draw charts of the kind “{kind}”.</Text>}
      {blueprint && isKnownKind && <ChartView chart={chart} blueprint={blueprint} />}
    </figure>
  )
}

function ChartMenu({ chart, index, isLast }: Omit<DashboardChartProps, 'blueprint'>) {
  const { id, title, blueprint, filters, width } = chart
  const isFull = width === 'full'
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Actions of ${title}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<IconPencil size={16} />}
          component={Link}
          to="/data/$blueprint/all/chart"
          params={{ blueprint } as never}
          search={toChartSearch(chart) as never}
        >
          Edit
        </Menu.Item>
        <Menu.Item
          leftSection={<IconList size={16} />}
          component={Link}
          to="/data/$blueprint"
          params={{ blueprint } as never}
          search={(filters ?? {}) as never}
        >
          Show its entities
        </Menu.Item>
        <Menu.Item
          leftSection={<IconArrowsHorizontal size={16} />}
          onClick={() => resizeChart(id, isFull ? 'half' : 'full')}
        >
          {isFull ? 'Make narrow' : 'Make wide'}
        </Menu.Item>
        {index > 0 && (
          <Menu.Item leftSection={<IconArrowUp size={16} />} onClick={() => moveChart(id, index - 1)}>
            Move before
          </Menu.Item>
        )}
        {!isLast && (
          <Menu.Item leftSection={<IconArrowDown size={16} />} onClick={() => moveChart(id, index + 1)}>
            Move after
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item leftSection={<IconTrash size={16} />} color="red" onClick={() => removeChart(chart)}>
          Remove
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
