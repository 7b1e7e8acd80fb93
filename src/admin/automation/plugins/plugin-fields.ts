import type { Plugin, PluginChange } from '../../api/schema'
import type { FormField, FormValues } from '../../fields/field-form'
import { SubscriptionsInput } from './subscriptions-input'

/** What a plugin consists of. */
export const pluginFields: FormField[] = [
  { key: 'name', title: 'Name', description: 'Not needed where a manifest has it.', type: 'string' },
  { key: 'description', title: 'Description', type: 'text' },
  {
    key: 'manifestUrl',
    title: 'Address of its manifest',
    description: 'JSON with the fields that are left empty here.',
    type: 'url',
  },
  {
    key: 'apiPath',
    title: 'Path',
    description: 'Requests to /api/<path>/… are forwarded to the plugin.',
    type: 'string',
  },
  { key: 'proxyUrl', title: 'Address that answers these requests', type: 'url' },
  { key: 'subscribedEvents', title: 'Events that it receives', type: 'object', Input: SubscriptionsInput },
]

/** The fields of a new plugin. */
export const newPluginFields: FormField[] = [
  ...pluginFields,
  {
    key: 'secret',
    title: 'Secret that signs',
    description: 'Leave it empty to have one made. It begins with whsec_.',
    type: 'string',
    isSecret: true,
  },
]

/** Returns a plugin as the values of its form. */
export const toPluginValues = ({ name, description, manifestUrl, apiPath, proxyUrl, ...rest }: Plugin): FormValues => ({
  ...{ name, description: description || undefined, manifestUrl: manifestUrl ?? undefined },
  ...{ apiPath: apiPath ?? undefined, proxyUrl: proxyUrl ?? undefined, subscribedEvents: rest.subscribedEvents },
})

/** Returns what a form changes. A text that was removed is empty, and so is a list. */
export const toPluginChange = (changes: FormValues): PluginChange => ({
  ...changes,
  ...('name' in changes && { name: String(changes.name ?? '') }),
  ...('description' in changes && { description: String(changes.description ?? '') }),
  ...('subscribedEvents' in changes && {
    subscribedEvents: (changes.subscribedEvents ?? []) as PluginChange['subscribedEvents'],
  }),
})
