export const firstNames =
  'Amara Ben Chloé Dmitri Elif Farid Greta Hiro Inés Jonas Kaveh Lena Mateo Nadia Oskar Priya Quentin Rosa Samir Tove Uma Viktor Wanda Xin Yara Zoltán'.split(
    ' ',
  )
export const lastNames =
  'Almeida Bauer Chen Dubois Eriksen Fischer García Haddad Ivanova Jensen Kowalski Laurent Moreau Nakamura Okafor Petrov Quist Rossi Silva Tanaka Ueda Virtanen Weber Xu Yilmaz Zimmermann'.split(
    ' ',
  )
export const companyNames =
  'Aurora Baltic Cedar Delta Ember Fjord Granite Harbour Indigo Juniper Kestrel Lumen Meridian Northwind Orchid Pioneer Quartz Redwood Summit Tidewater'.split(
    ' ',
  )
export const industries = ['Logistics', 'Health', 'Education', 'Energy', 'Retail', 'Software', 'Food', 'Travel']
export const cities = ['Lisbon', 'Hamburg', 'Oslo', 'Kraków', 'Lyon', 'Turin', 'Tallinn', 'Ghent', 'Malmö', 'Zürich']
export const jobs = ['Buyer', 'Engineer', 'Accountant', 'Head of Sales', 'Founder', 'Office Manager', 'Designer']
export const stages = ['lead', 'contacted', 'customer', 'former']
