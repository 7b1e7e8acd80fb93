import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import { rectSortingStrategy, SortableContext, sortableKeyboardCoordinates } from '@dnd-kit/sortable'
import type { Blueprint } from '../api/schema'
import classes from './dashboard.module.css'
import { moveChart } from './dashboard-changes'
import { DashboardChart } from './dashboard-chart'
import type { SavedChart } from './saved-chart'

const MIN_DRAG_PX = 6

/** The charts that all admins share, in their order. They are moved by their handles, or by their menus. */
export function Dashboard({ charts, blueprints }: { charts: SavedChart[]; blueprints: Blueprint[] }) {
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: MIN_DRAG_PX } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  )
  const drop = ({ active, over }: DragEndEvent) => {
    if (over && over.id !== active.id)
      void moveChart(
        String(active.id),
        charts.findIndex(({ id }) => id === over.id),
      )
  }
  return (
    <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={drop}>
      <SortableContext items={charts} strategy={rectSortingStrategy}>
        <div className={classes.dashboard}>
          {charts.map((chart, index) => (
            <DashboardChart
              key={chart.id}
              chart={chart}
              blueprint={blueprints.find(({ key }) => key === chart.blueprint)}
              index={index}
              isLast={index === charts.length - 1}
            />
          ))}
        </div>
      </SortableContext>
    </DndContext>
  )
}
