import {
  type Announcements,
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  type UniqueIdentifier,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import {
  arrayMove,
  SortableContext,
  sortableKeyboardCoordinates,
  useSortable,
  verticalListSortingStrategy,
} from '@dnd-kit/sortable'
import { CSS } from '@dnd-kit/utilities'
import { ActionIcon, Text } from '@mantine/core'
import { IconGripVertical } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { api } from '../api/client'
import { queryClient } from '../api/queries'
import type { Plan } from '../api/schema'
import { showProblem, showUndo } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SidePanel } from '../ui/side-panel'
import { useListNavigation } from './list-navigation'
import { plansQuery, refreshPayments } from './payment-queries'
import classes from './payments.module.css'
import { describePlanPrice } from './price-words'

/** Room between two plans, so that a program can put one between them. */
const STEP = 10

/** Returns what assistive technology says while a plan is moved. */
function announceMoves(plans: readonly Plan[]): Announcements {
  const nameOf = (id: UniqueIdentifier) => plans.find(({ _id }) => _id === id)?.name ?? ''
  const positionOf = (id: UniqueIdentifier) => plans.findIndex(({ _id }) => _id === id) + 1
  return {
    onDragStart: ({ active }) => `${nameOf(active.id)} is picked up.`,
    onDragOver: ({ active, over }) =>
      over ? `${nameOf(active.id)} is at position ${positionOf(over.id)}.` : undefined,
    onDragEnd: ({ active, over }) =>
      over ? `${nameOf(active.id)} is dropped at position ${positionOf(over.id)}.` : `${nameOf(active.id)} is dropped.`,
    onDragCancel: ({ active }) => `${nameOf(active.id)} is back at its former position.`,
  }
}

/** Saves the order of plans. */
async function saveOrder(plans: readonly Plan[]) {
  try {
    for (const [index, { _id: id }] of plans.entries())
      await api.PUT('/api/plans/{id}', { params: { path: { id } }, body: { sortOrder: (index + 1) * STEP } })
  } finally {
    await refreshPayments()
  }
}

/** The plans in the order in which customers see them, to be dragged. */
export function PlanOrderPanel() {
  const { close } = useListNavigation('/payments/plans')
  const { data = [], error } = useQuery(plansQuery)
  const plans = data.filter(({ isActive }) => isActive)
  const saving = useMutation({
    // One order is saved after the other, so that the last one stays.
    scope: { id: 'plan-order' },
    mutationFn: saveOrder,
    onError: showProblem,
  })
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  )
  const move = ({ active, over }: DragEndEvent) => {
    const [from, to] = [active.id, over?.id].map((id) => plans.findIndex(({ _id }) => _id === id)) as [number, number]
    if (to < 0 || from === to) return
    const after = arrayMove(plans, from, to)
    queryClient.setQueryData(plansQuery.queryKey, [...after, ...data.filter(({ isActive }) => !isActive)])
    saving.mutate(after, {
      onSuccess: () => showUndo(`“${plans[from]?.name}” is now number ${to + 1}.`, () => saveOrder(plans)),
    })
  }
  return (
    <SidePanel title="Order of the plans" onClose={close}>
      {error && <ProblemMessage error={error} />}
      <Text size="sm" c="dimmed" mb="sm">
        Customers see the plans in this order. Drag a handle, or focus it and press Space and the arrow keys.
      </Text>
      <DndContext
        sensors={sensors}
        collisionDetection={closestCenter}
        accessibility={{ announcements: announceMoves(plans) }}
        onDragEnd={move}
      >
        <SortableContext items={plans.map(({ _id }) => _id)} strategy={verticalListSortingStrategy}>
          <ol className={classes.list}>
            {plans.map((plan) => (
              <SortablePlan key={plan._id} plan={plan} />
            ))}
          </ol>
        </SortableContext>
      </DndContext>
    </SidePanel>
  )
}

function SortablePlan({ plan }: { plan: Plan }) {
  const { attributes, listeners, setNodeRef, transform, transition, isDragging } = useSortable({ id: plan._id })
  return (
    <li
      ref={setNodeRef}
      className={`${classes.sortable} ${isDragging ? classes.dragged : ''}`}
      style={{ transform: CSS.Transform.toString(transform), transition }}
    >
      <ActionIcon variant="subtle" color="gray" aria-label={`Move ${plan.name}`} {...attributes} {...listeners}>
        <IconGripVertical size={16} />
      </ActionIcon>
      <span className={classes.grow}>
        {plan.name}
        <Text size="xs" c="dimmed">
          {describePlanPrice(plan)}
        </Text>
      </span>
    </li>
  )
}
