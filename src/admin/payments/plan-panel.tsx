import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Plan } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { useListNavigation } from './list-navigation'
import { configurationQuery, planQuery, providerConnectionsQuery, refreshPayments } from './payment-queries'
import { archivePlan } from './plan-archive'
import { fromPlanValues, listPlanFields, toPlanValues } from './plan-fields'
import type { ProviderKind } from './providers/provider-kind'

const FORM_ID = 'plan-form'

const withoutUndefined = (values: FormValues) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** Saves a plan, new or changed. */
async function savePlan(changes: FormValues, values: FormValues, before?: Plan): Promise<Plan> {
  const sentValues = before ? changes : withoutUndefined(values)
  const body = fromPlanValues(sentValues, values, before) as never
  const answer = before
    ? api.PUT('/api/plans/{id}', { params: { path: { id: before._id } }, body })
    : api.POST('/api/plans', { body })
  const saved = await fetchData(answer as Promise<{ data?: Plan }>)
  showNotice(before ? 'The plan is saved.' : 'The plan is created.')
  return saved
}

function PlanForm({ plan, onSaved }: { plan?: Plan; onSaved: (plan: Plan) => void }) {
  const configuration = useQuery(configurationQuery)
  const connections = useQuery(providerConnectionsQuery)
  if (configuration.error ?? connections.error)
    return <ProblemMessage error={configuration.error ?? connections.error} />
  if (!configuration.data || !connections.data) return null
  const kinds = [...connections.data.map(({ kind }) => kind), ...Object.keys(plan?.externalIds ?? {})] as ProviderKind[]
  return (
    <FieldForm
      id={FORM_ID}
      fields={listPlanFields(configuration.data.metadata.defaultCurrency as string | undefined, kinds)}
      before={plan && toPlanValues(plan)}
      draftKey={`plan:${plan?._id ?? ''}`}
      save={(changes, values) => savePlan(changes, values, plan)}
      onSaved={onSaved}
    />
  )
}

/** A form for a new plan. */
export function NewPlanPanel() {
  const { close, open } = useListNavigation('/payments/plans')
  return (
    <SidePanel title="New plan" onClose={close} footer={<SaveButton form={FORM_ID} label="Create plan" />}>
      <PlanForm onSaved={({ _id }) => void refreshPayments().then(() => open(_id, true))} />
    </SidePanel>
  )
}

/** Puts an archived plan on sale again. */
async function restorePlan({ _id: id, name }: Plan) {
  await api.PUT('/api/plans/{id}', { params: { path: { id } }, body: { isActive: true } })
  await refreshPayments()
  showNotice(`“${name}” is on sale again.`)
}

/** One plan beside the list. */
export function PlanPanel() {
  const { close } = useListNavigation('/payments/plans')
  const { plan: id = '' } = useParams({ strict: false }) as { plan?: string }
  const { data: plan, error } = useQuery(planQuery(id))
  return (
    <SidePanel
      title={plan?.name ?? ''}
      onClose={close}
      footer={
        plan && (
          <>
            <SaveButton form={FORM_ID} />
            <Button ml="auto" variant="subtle" component={Link} to="/payments/simulator" search={{ plan: id } as never}>
              Simulate
            </Button>
            {plan.isActive ? (
              <Button variant="subtle" color="red" onClick={() => archivePlan(plan).catch(showProblem)}>
                Archive
              </Button>
            ) : (
              <Button variant="subtle" onClick={() => restorePlan(plan).catch(showProblem)}>
                Put on sale
              </Button>
            )}
          </>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {plan && <PlanForm key={plan.updated} plan={plan} onSaved={() => void refreshPayments()} />}
    </SidePanel>
  )
}
