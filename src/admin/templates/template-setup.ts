import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import { saveChart } from '../charts/saved-chart'
import type { Template } from './template'

/** Creates what a template describes: its blueprints, then their sample data, then its charts. `onStep` says what is created. */
export async function applyTemplate(template: Template, onStep: (step: string) => void) {
  for (const blueprint of template.blueprints) {
    onStep(`Creating ${blueprint.name.toLowerCase()}`)
    await fetchData(api.POST('/api/blueprints', { body: blueprint }))
  }
  for (const [key, entities] of Object.entries(template.makeEntities(new Date()))) {
    onStep(`Adding sample ${key}`)
    const operations = entities.map(({ identifier, ...data }) => ({ op: 'create' as const, identifier, data }))
    await fetchData(
      api.POST('/api/blueprints/{key}/entities/batch', { params: { path: { key } }, body: { operations } }),
    )
  }
  onStep('Drawing charts')
  for (const chart of template.charts) await saveChart(chart)
  await queryClient.invalidateQueries()
}
