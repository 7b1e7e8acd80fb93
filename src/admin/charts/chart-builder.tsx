import { Button, Select } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { blueprintQuery, blueprintsQuery, meQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { FilterBar } from '../data/filter-bar'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type ChartSearch, readChart } from './chart-address'
import classes from './chart-builder.module.css'
import { toChartRequest } from './chart-data'
import { ChartForm } from './chart-form'
import { ChartView } from './chart-view'
import { saveChart } from './saved-chart'

const FORM_ID = 'chart-form'
const route = getRouteApi('/frame/data/$blueprint/all/chart')

/** A form that makes a chart of the entities of a blueprint. The address holds all choices. */
export function ChartBuilder() {
  const { blueprint: key } = route.useParams()
  const blueprint = useQuery(blueprintQuery(key))
  if (blueprint.error) return <ProblemMessage error={blueprint.error} />
  return blueprint.data ? <ChartEditor key={key} blueprint={blueprint.data} /> : null
}

/** An option that is emptied leaves the address, so that it gets its answer from the fields again. */
const withoutEmpty = (search: ChartSearch) => Object.fromEntries(Object.entries(search).filter(([, value]) => value))

function ChartEditor({ blueprint }: { blueprint: Blueprint }) {
  const navigate = useNavigate()
  const search = route.useSearch() as ChartSearch
  const { data: me } = useQuery(meQuery)
  const [title, setTitle] = useState(search.$title ?? '')
  const described = readChart({ ...search, $title: '' }, blueprint)
  const chart = { ...described, title: title || described.title }
  const isNew = !search.$chart
  const save = useMutation({
    mutationFn: () => saveChart({ ...chart, id: search.$chart }),
    onSuccess: async () => {
      showNotice(isNew ? 'The chart is on the dashboard.' : 'The chart was saved.')
      await navigate({ to: '/home' })
    },
  })
  const change = (next: ChartSearch) => navigate({ to: '.', search: withoutEmpty(next) as never, replace: true })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!save.isPending) save.mutate()
  }
  return (
    <Screen
      title={isNew ? 'New chart' : 'Edit chart'}
      request={toChartRequest(chart)}
      actions={
        me?.isPrivileged && (
          <Button type="submit" form={FORM_ID} loading={save.isPending}>
            {isNew ? 'Save to dashboard' : 'Save'}
          </Button>
        )
      }
      toolbar={
        <>
          <BlueprintSwitcher blueprint={blueprint} />
          <FilterBar fields={blueprint.fields} search={search} onChange={change} />
        </>
      }
    >
      <div className={classes.builder}>
        <form id={FORM_ID} className={classes.form} onSubmit={submit}>
          <ChartForm
            blueprint={blueprint}
            chart={described}
            title={title}
            onChange={(changed) => change({ ...search, ...changed })}
            onTitle={setTitle}
          />
        </form>
        <section className={classes.preview} aria-label="Preview">
          {save.error && <ProblemMessage error={save.error} />}
          <h2 className={classes.title}>{chart.title}</h2>
          <ChartView chart={chart} blueprint={blueprint} />
        </section>
      </div>
    </Screen>
  )
}

/** Leads to the same screen of another blueprint. */
function BlueprintSwitcher({ blueprint }: { blueprint: Blueprint }) {
  const navigate = useNavigate()
  const { data: blueprints = [blueprint] } = useQuery(blueprintsQuery)
  return (
    <Select
      size="xs"
      aria-label="Blueprint"
      data={blueprints.map(({ key, name }) => ({ value: key, label: name }))}
      value={blueprint.key}
      allowDeselect={false}
      searchable={blueprints.length > 8}
      onChange={(key) => navigate({ to: '/data/$blueprint/all/chart', params: { blueprint: key ?? '' } })}
    />
  )
}
