module lithify.example/levigo

go 1.20

require github.com/jmhodges/levigo v1.0.0
