// Asks the questions of a file by pgx or lib/pq; prints a line of JSON for each step.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

var asked map[string]string

func main() {
	driver := os.Args[1]
	text, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if err != nil {
		panic(err)
	}
	known, poor := open(driver, ""), open(driver, "poor_")
	step("connect", known, "SELECT 1")
	step("tables", known, asked["tables_in_sql"])
	step("columns", known, asked["columns_in_sql"])
	for _, name := range []string{"top", "series", "sum", "refused"} {
		step(name, known, asked[name])
	}
	step("exhausted", poor, asked["top"])
	step("again", known, asked["top"])
	step("parameter", known, asked["prepared"], asked["value"])
	step("list", known, asked["listed"], list(driver, asked["value"]))
	step("days", known, asked["between"], day(2025), day(2026))
}

func open(driver, who string) *sql.DB {
	database, err := sql.Open(driver, asked[who+"postgres_dsn"])
	if err != nil {
		panic(err)
	}
	return database
}

// list returns a list as a driver takes it: lib/pq has a type for it, pgx takes Go's own.
func list(driver, value string) any {
	if driver == "postgres" {
		return pq.Array([]string{value})
	}
	return []string{value}
}

func day(year int) time.Time {
	return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)
}

func step(name string, database *sql.DB, question string, values ...any) {
	for number := range values {
		question = strings.Replace(question, "?", fmt.Sprintf("$%d", number+1), 1)
	}
	said := map[string]any{"step": name}
	if rows, err := rowsOf(database, question, values); err == nil {
		said["rows"] = rows
	} else {
		said["error"] = err.Error()
	}
	line, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func rowsOf(database *sql.DB, question string, values []any) ([][]any, error) {
	found, err := database.Query(question, values...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	rows := [][]any{}
	for found.Next() {
		row, places := make([]any, len(columns)), make([]any, len(columns))
		for place := range row {
			places[place] = &row[place]
		}
		if err := found.Scan(places...); err != nil {
			return nil, err
		}
		for place, value := range row {
			row[place] = plain(value)
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}

func plain(value any) any {
	switch given := value.(type) {
	case time.Time:
		return given.Format(time.DateOnly)
	case []byte:
		return string(given)
	}
	return value
}
